"""Checkpoints of a run: the last few with everything that training needs, and the best model.

Variables are saved as named tensors, not as attributes of the Keras objects: `tf.train.Checkpoint` does
not see layers that a Keras 3 model keeps in a list, and saves and restores it without them, silently.

model/<name>          the weights
averaged/<name>       their exponential moving averages, under --ema_decay
optimizer/<index>     what else the optimizer remembers
loss_scale/<index>    the state of dynamic loss scaling, where there is any
step, host            updates made; JSON of what the training loop itself remembers
"""

import json
import math
import pathlib
import sys
import typing

import tensorflow as tf

from trainer import checkpoint_files
from trainer.best import best_path, best_values, mend_best, merit
from trainer.named_tensors import DamagedError, Reader, averaged_variables, model_variables, restore, write
from trainer.run_dir import checkpoint_path, missing_checkpoint
from ut_keras import optimizers
from ut_keras.errors import UserError


class Restored(typing.NamedTuple):
    """Where a run goes on.

    Attributes:
        step: updates made; 0 at the start.
        host: the dict that `Checkpoints.save` was given; {} where there is none.
    """

    step: int
    host: dict


class Checkpoints:
    """Saves and restores one run.

    Args:
        run: `RunDir`.
        model, optimizer: both built.
        keep: how many of the last checkpoints are kept.
        selection: what makes a checkpoint the best on dev: "accuracy" or "loss" (`Problem.selection`).
    """

    def __init__(self, run, model, optimizer, keep=3, selection="accuracy"):
        self._run = run
        self._keep = keep
        self._selection = selection
        self._last, self._best = run.path / "checkpoints", run.path / "best"
        self._weights = model_variables(model)
        self._averages = averaged_variables(model, optimizer)
        self._slots = _numbered(optimizers.slots(optimizer))
        self._loss_scale = _numbered(optimizers.loss_scale_state(optimizer))
        averaged = {id(variable) for variable in optimizers.averages(optimizer) or ()}
        self._with_loss_scale = _numbered(variable for variable in optimizer.variables if id(variable) not in averaged)
        with tf.device("CPU:0"):
            self._step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
            self._host = tf.Variable("{}", trainable=False, name="host")

    def restore_last(self):
        """Restores the newest readable checkpoint and returns `Restored`; removes what a killed save has left.

        Raises:
            UserError: there are checkpoints and none of them can be read, or they are of another architecture.
        """
        for path in checkpoint_files.lost(self._last):
            _warn(DamagedError(path, "it is missing or was not written to its end"))
        for directory in (self._run.path, self._last, self._best):
            checkpoint_files.remove_leftovers(directory)
        mend_best(self._run, self._selection)
        paths = checkpoint_files.listed(self._last)[::-1]
        for path in paths:
            try:
                self._restore(Reader(path))
            except DamagedError as error:
                _warn(error)
            else:
                return Restored(int(self._step.numpy()), json.loads(self._host.numpy()))
        if paths:
            raise UserError(
                f"none of the checkpoints in {self._last} can be read: remove them to start from step 0 again, or "
                "start another --output_dir with --warm_start_from and a checkpoint that can"
            )
        reached = max((line["step"] for line in self._run.metrics()), default=0)
        if reached:
            metrics = f"metrics.jsonl goes to step {reached:,}"
            _say(f"warning: {self._run.path} holds no checkpoint, though its {metrics}: starting from step 0")
        return Restored(0, {})

    def save(self, step, host=None):
        """Saves everything, and then deletes the oldest checkpoint beyond `keep`.

        A checkpoint of a later step is deleted too: `restore_last` could not read it.

        Args:
            step: updates made.
            host: a dict that JSON can hold: what the caller wants back from `restore_last`.

        Raises:
            UserError: it cannot be written; those before are as they were.
        """
        self._host.assign(json.dumps(host or {}))
        parts = {"model": self._weights, "optimizer": self._slots, "step": self._step, "host": self._host}
        if self._averages:
            parts["averaged"] = self._averages
        if self._loss_scale:
            parts["loss_scale"] = self._loss_scale
        self._write(self._last, step, parts)
        paths = checkpoint_files.listed(self._last)
        lost = [path for path in paths if checkpoint_files.step_of(path) > step]
        self._tidy(self._last, lost + paths[: len(paths) - len(lost)][: -self._keep])

    def save_best(self, step, values):
        """Saves the model if no evaluation before was better than `values`. Returns in which words it was; else "".

        Better is, on the development split, a higher accuracy of single tokens (or classes), teacher-forced, or under
        selection "loss" a lower negative log-likelihood per token. Of equals the later wins: where a small split is
        answered without a fault, its perplexity says less than the training since, and the last weights have seen
        the lowest learning rate.

        Under --ema_decay the model that is saved is that of the averages: `values` are to be theirs. best.json names
        the step whose weights count; it is written after them and before the old ones are deleted, so that a process
        may be killed at any point, and the same evaluation be saved again.
        """
        if not all(map(math.isfinite, values.values())):
            return ""  # a model that answers with what is no number is the best of nothing
        before, now = best_values(self._run), merit(values, self._selection)
        least = merit(before, self._selection) if before else -math.inf
        if now < least:
            return ""
        self._write(self._best, step, {"model": {**self._weights, **self._averages}, "step": self._step})
        record = {"step": step, "selection": self._selection, **values}
        self._run.write("best.json", json.dumps(record, indent=2) + "\n")
        paths = checkpoint_files.listed(self._best)
        self._tidy(self._best, [path for path in paths if checkpoint_files.step_of(path) != step])
        return "as good as the best, kept in its place" if now == least else "kept as the best"

    def start_averages(self):
        """Makes the moving averages, where there are any, the weights as they are: what they are before an update."""
        for name, average in self._averages.items():
            average.assign(self._weights[name])

    def _restore(self, reader):
        parts = {"model": self._weights, "optimizer": self._slots_in(reader), "step": self._step}
        averaged = any(name.startswith("averaged/") for name in reader.shapes)
        if averaged and self._averages:
            parts["averaged"] = self._averages
        if self._loss_scale and "loss_scale/0000" in reader.shapes:  # --on_nan may be another than it was
            parts["loss_scale"] = self._loss_scale
        self._host.assign("{}")
        if "host" in reader.shapes:
            parts["host"] = self._host
        restore(reader, parts)
        if averaged and not self._averages:
            _say(f"{reader.path} holds moving averages of the weights: without --ema_decay they end here")
        if self._averages and not averaged:
            self.start_averages()
            _say(f"{reader.path} holds no moving averages of the weights: those of --ema_decay start from its weights")

    def _slots_in(self, reader):
        """Returns {index: variable} as a checkpoint numbers them: the first ones had the loss scale among the slots."""
        count = sum(name.startswith("optimizer/") for name in reader.shapes)
        return self._with_loss_scale if count == len(self._with_loss_scale) else self._slots

    def _write(self, directory, step, parts):
        self._step.assign(step)
        try:
            write(directory / f"ckpt-{step}", parts)
        except UserError as error:
            intact = [other.name for other in checkpoint_files.listed(self._last)]
            rest = f"{', '.join(intact)} in {self._last} can be gone on from" if intact else "there is none before it"
            raise UserError(f"{error}; {rest}") from None

    def _tidy(self, directory, paths):
        for path in paths:
            checkpoint_files.remove(path)
        checkpoint_files.write_state(directory)


def restore_model(run, model, checkpoint="best"):
    """Restores the weights of `model` from a run and returns the step at which they were saved.

    Where a checkpoint holds moving averages of the weights, these are taken.

    Args:
        run: `RunDir`.
        model: built.
        checkpoint: "best", "last", or the path of a checkpoint, as for `find_checkpoint`.

    Raises:
        UserError: no such checkpoint, damaged, or of another architecture.
    """
    step = tf.Variable(-1, dtype=tf.int64, trainable=False)
    weights = model_variables(model)
    path = find_checkpoint(run, checkpoint)
    try:
        reader = Reader(path)
        restore(reader, {"model": weights, "step": step})
        averaged = {name: variable for name, variable in weights.items() if f"averaged/{name}" in reader.shapes}
        if averaged:
            restore(reader, {"averaged": averaged})
    except DamagedError as error:
        raise UserError(f"{error}; take another by --checkpoint=best, last or a path") from None
    return int(step.numpy())


def find_checkpoint(run, checkpoint):
    """Returns the path that "best", "last" or a path means.

    "best" is what best.json names, or, where no evaluation was made, the last one, which is said on standard error.
    "last" is the newest that can be read: a damaged one gives way to the one before with a warning.

    Raises:
        UserError: there is no such checkpoint.
    """
    if checkpoint not in ("best", "last"):
        return checkpoint_at(checkpoint)
    if checkpoint == "best":
        found = best_path(run)
        if found:
            return str(found)
        if checkpoint_files.listed(run.path / "checkpoints"):
            _say(f"{run.path} holds no evaluation: taking its last checkpoint as the best")
    paths = checkpoint_files.listed(run.path / "checkpoints")[::-1]
    for path in paths:
        try:
            Reader(path).check(("model", "averaged", "step"))
        except DamagedError as error:
            _warn(error)
        else:
            return str(path)
    if paths:
        raise UserError(f"none of the checkpoints in {run.path / 'checkpoints'} can be read")
    instead = "; --checkpoint=best is there" if checkpoint == "last" and best_path(run) else ""
    raise UserError(f"{run.path} holds no checkpoint yet{instead}")


def checkpoint_at(path):
    """Returns the checkpoint at a path, or the last one of a directory; UserError when there is none."""
    path = checkpoint_path(path)
    if pathlib.Path(path).is_dir():
        paths = checkpoint_files.listed(path)
        return str(paths[-1]) if paths else missing_checkpoint(path)
    return path


def _numbered(variables):
    return {f"{index:04d}": variable.value for index, variable in enumerate(variables)}


def _warn(error):
    _say(f"warning: {error}; trying the one before")


def _say(text):
    print(text, file=sys.stderr, flush=True)
