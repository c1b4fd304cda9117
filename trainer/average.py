"""The mean of the weights of several checkpoints of a run, as a run directory of its own.

What is averaged are the weights themselves ("model/" in a checkpoint), also where a checkpoint holds their moving
averages beside them: those are means already, over much the same updates from one checkpoint to the next. best/ of a
run with --ema_decay holds the moving averages as its weights.
"""

import pathlib
import sys

import numpy as np

from trainer import checkpoint_files
from trainer.best import best_path
from trainer.run_dir import RunDir, checkpoint_path, missing_checkpoint, refuse_foreign
from ut_keras.errors import UserError


def sources(run, last=None, names=()):
    """Returns the checkpoints to average, pathlib.Paths.

    Args:
        run: `RunDir`.
        last: how many of the run's last checkpoints; None: all that were kept.
        names: instead, paths of checkpoints, or "best" and "last" for those of `run`.

    Raises:
        UserError: there are fewer, one of them is not there, or one is named twice.
    """
    there = checkpoint_files.listed(run.path / "checkpoints")
    if not names:
        if not there or (last or 1) > len(there):
            held = f"{run.path / 'checkpoints'} holds {len(there) or 'no'} checkpoint{'s'[len(there) == 1 :]}"
            way_out = f", not {last}: ask for fewer, or train with --keep_checkpoints={last}" if last else ""
            raise UserError(held + way_out)
        return there[-(last or len(there)) :]
    own = {"best": best_path(run), "last": there[-1] if there else None}
    paths = [pathlib.Path(own.get(name) or checkpoint_path(name)) for name in names]
    for path in paths:
        if path.is_dir():
            missing_checkpoint(path)
        if [other.resolve() for other in paths].count(path.resolve()) > 1:
            raise UserError(f"--checkpoints: {path} is named twice and would count double; name it once")
    return paths


def refuse_target(to):
    """UserError where `to` is anything but a new or an empty directory."""
    if RunDir.exists(to):
        kind = "an earlier average" if RunDir.open(to).averaged_from else "a run that was trained"
        raise UserError(f"--to={to} holds {kind}: remove it or choose another directory")
    refuse_foreign(to, "--to")
    if to.is_dir() and any(to.iterdir()):
        raise UserError(f"--to={to} holds {min(entry.name for entry in to.iterdir())}; choose an empty directory")


def average(run, paths, to):
    """Writes the mean of checkpoints as the run directory `to`, which evaluate, decode and export take as any other.

    Sums are made in float64, one weight at a time. What is not a float is copied from the checkpoint of the last
    step, and that step is the average's.

    Args:
        run: `RunDir` of the model.
        paths: what `sources` returned.
        to: a pathlib.Path that passes `refuse_target`.

    Raises:
        UserError: a checkpoint is damaged, of another architecture, or has weights that are not finite; or two hold
            the same weights.
    """
    import tensorflow as tf

    from trainer.named_tensors import Reader, model_variables, refuse_other_architecture, write
    from ut_keras.models.build import build_model

    weights = model_variables(build_model(run.hparams, run.problem.features))
    step = tf.Variable(0, dtype=tf.int64, trainable=False)
    readers = list(map(Reader, paths))
    for reader in readers:
        refuse_other_architecture(reader, {"model": weights, "step": step})
    readers.sort(key=lambda reader: int(reader.tensor("step")))
    _refuse_equal(readers)
    for name, variable in weights.items():
        variable.assign(_mean(readers, f"model/{name}"))
    steps = [int(reader.tensor("step")) for reader in readers]
    step.assign(steps[-1])

    settings = {**run.settings, "averaged_from": [str(path) for path in paths]}
    with RunDir.create_whole(to, run.hparams, run.problem, settings) as made:
        write(made.path / "best" / f"ckpt-{steps[-1]}", {"model": weights, "step": step})
        checkpoint_files.write_state(made.path / "best")
    count = f"{len(steps)} checkpoint{'s'[len(steps) == 1 :]}"
    print(f"averaged {count}: steps {', '.join(map(str, steps))}", file=sys.stderr, flush=True)


def _mean(readers, name):
    newest = readers[-1].tensor(name)
    if not np.issubdtype(newest.dtype, np.floating):
        return newest
    total = np.zeros(newest.shape, np.float64)
    for reader in readers:
        value = reader.tensor(name)
        if not np.isfinite(value).all():
            raise UserError(f"checkpoint {reader.path} has weights that are not finite: {name}; leave it out")
        total += value
    return (total / len(readers)).astype(newest.dtype)


def _refuse_equal(readers):
    """UserError where two checkpoints hold the same weights, which would count double: the best may be the last."""
    for index, reader in enumerate(readers):
        names = [name for name in reader.shapes if name.startswith("model/")]
        for other in readers[:index]:
            if all(np.array_equal(reader.tensor(name), other.tensor(name)) for name in names):
                raise UserError(f"{other.path} and {reader.path} hold the same weights; leave one of them out")
