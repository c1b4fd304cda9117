"""Checkpoints of a run: the last few with everything that training needs, and the best model.

Variables are saved as named tensors, not as attributes of the Keras objects: `tf.train.Checkpoint` does
not see layers that a Keras 3 model keeps in a list, and saves and restores it without them, silently.
"""

import json
import math
import pathlib
import re
import sys

import tensorflow as tf

from trainer.run_dir import checkpoint_path, missing_checkpoint, read_json
from ut_keras.errors import UserError

# What TensorFlow raises for files that are cut off, missing or of other bytes.
DAMAGED = (tf.errors.OpError, IndexError)
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


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
        self._selection = selection
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        weights = model_variables(model)
        slots = {f"{index:04d}": variable.value for index, variable in enumerate(optimizer.variables)}
        self._all = tf.train.Checkpoint(model=weights, optimizer=slots, step=self._step)
        self._last = tf.train.CheckpointManager(self._all, str(run.path / "checkpoints"), keep, checkpoint_name="ckpt")
        only_model = tf.train.Checkpoint(model=weights, step=self._step)
        self._best = tf.train.CheckpointManager(only_model, str(run.path / "best"), 1, checkpoint_name="ckpt")

    def restore_last(self):
        """Restores the newest readable checkpoint and returns its step; 0 when the run has none.

        Raises:
            UserError: there are checkpoints and none of them can be read, or they are of another architecture.
        """
        paths = list(reversed(self._last.checkpoints)) or _unlisted(self._last.directory)
        for path in paths:
            try:
                _restore(self._all, path)
            except DAMAGED as error:
                print(
                    f"warning: checkpoint {path} is damaged ({first_line(error)}); trying the one before",
                    file=sys.stderr,
                )
            else:
                return int(self._step.numpy())
        if paths:
            raise UserError(f"none of the checkpoints in {self._last.directory} can be read")
        return 0

    def save(self, step):
        """Saves model, optimizer and step, and deletes the oldest checkpoint beyond `keep`."""
        self._step.assign(step)
        self._last.save(checkpoint_number=step)

    def save_best(self, step, values):
        """Saves the model if no evaluation before was better than `values`. Returns whether that is so.

        Better is, on the development split, a higher accuracy of single tokens (or classes), teacher-forced, or under
        selection "loss" a lower negative log-likelihood per token. Of equals the later wins: where a small split is
        answered without a fault, its perplexity says less than the training since, and the last weights have seen
        the lowest learning rate.
        """
        before = _best_values(self._run) if self._best.latest_checkpoint else None
        if before and _merit(values, self._selection) < _merit(before, self._selection):
            return False
        self._step.assign(step)
        self._best.save(checkpoint_number=step)
        record = {"step": step, "selection": self._selection, **values}
        self._run.write("best.json", json.dumps(record, indent=2) + "\n")
        return True


def restore_model(run, model, checkpoint="best"):
    """Restores the weights of `model` from a run and returns the step at which they were saved.

    Args:
        run: `RunDir`.
        model: built.
        checkpoint: "best", "last", or the path of a checkpoint. Where no evaluation was made,
            "best" is the last one, which is said on standard error.

    Raises:
        UserError: no such checkpoint, damaged, or of another architecture.
    """
    path = find_checkpoint(run, checkpoint)
    step = tf.Variable(-1, dtype=tf.int64, trainable=False)
    try:
        _restore(tf.train.Checkpoint(model=model_variables(model), step=step), path, ignore="optimizer/")
    except DAMAGED as error:
        raise UserError(f"checkpoint {path} is damaged: {first_line(error)}") from None
    return int(step.numpy())


def find_checkpoint(run, checkpoint):
    """Returns the path that "best", "last" or a path means; UserError when there is no such checkpoint."""
    if checkpoint in ("best", "last"):
        path = tf.train.latest_checkpoint(str(run.path / ("best" if checkpoint == "best" else "checkpoints")))
        if path is None and checkpoint == "best":
            path = tf.train.latest_checkpoint(str(run.path / "checkpoints"))
            if path:
                print(f"{run.path} holds no evaluation: taking its last checkpoint as the best", file=sys.stderr)
        if path is None:
            raise UserError(f"{run.path} holds no checkpoint yet")
        return path
    return checkpoint_at(checkpoint)


def checkpoint_at(path):
    """Returns the checkpoint at a path, or the last one of a directory; UserError when there is none."""
    path = checkpoint_path(path)
    if pathlib.Path(path).is_dir():
        return tf.train.latest_checkpoint(path) or missing_checkpoint(path)
    return path


def _unlisted(directory):
    """Returns the checkpoints in a directory whose list of them, the file `checkpoint`, is lost; the newest first."""
    files = [file.with_suffix("") for file in pathlib.Path(directory).glob("ckpt-*.index")]
    return [str(file) for file in sorted(files, key=lambda file: int(file.name.removeprefix("ckpt-")), reverse=True)]


def model_variables(model):
    """Returns {name: tf.Variable} of a model, in its own order: "007/body/self_attention/q".

    The seed of its random numbers is left out: training derives its own from the step. Numbers that Keras adds
    to a name are dropped: they count how often a process has built such a layer.
    """
    weights = [variable for variable in model.variables if not variable.path.endswith("seed_generator_state")]
    paths = [re.sub(r"_\d+(?=/|$)", "", variable.path) for variable in weights]
    return {f"{index:03d}/{path}": weights[index].value for index, path in enumerate(paths)}


def _restore(checkpoint, path, ignore="\0"):
    """Restores every variable of `checkpoint`, or none: UserError where names or shapes differ."""
    ours = {name: variable.shape.as_list() for name, variable in _named(checkpoint).items()}
    saved = {
        name.removesuffix(SUFFIX): shape
        for name, shape in tf.train.list_variables(path)
        if name.endswith(SUFFIX) and not name.startswith((ignore, "save_counter"))
    }
    for name in sorted(ours.keys() | saved.keys()):
        if ours.get(name) != saved.get(name):
            raise UserError(
                f"checkpoint {path} is of another architecture: {name.replace('.S', '/')} is "
                f"{saved.get(name, 'missing')} there and {ours.get(name, 'missing')} here"
            )
    checkpoint.restore(path).expect_partial()


def _named(checkpoint):
    found = {}
    for part in ("model", "optimizer", "step"):
        value = getattr(checkpoint, part, None)
        if isinstance(value, tf.Variable):
            found[part] = value
        elif value is not None:
            found.update({f"{part}/{name.replace('/', '.S')}": variable for name, variable in value.items()})
    return found


def _best_values(run):
    path = run.path / "best.json"
    return read_json(path) if path.exists() else None


def _merit(values, selection):
    """Returns what the best evaluation has most of: scores of all of dev, which say teacher-forced for a sequence.

    Least of all where it is no number: a model that has run into one is never better than another.
    """
    metric, sign = ("log_perplexity", -1.0) if selection == "loss" else ("accuracy", 1.0)
    value = next(values[key] for key in (f"dev/teacher_forced/{metric}", f"dev/{metric}") if key in values)
    return -math.inf if math.isnan(value) else sign * value


def first_line(error):
    """Returns the first line of an error's message, or its kind where it has none."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
