"""Whether a run can be written, known before it has trained for hours. Standard library only."""

import os
import pathlib

from ut_keras.errors import UserError

_DIRECTORIES = ("", "checkpoints", "best", "tb")
_FILES = (
    "run.json hparams.json problem.json metrics.jsonl best.json eval.json decodes.txt ponder.png .lock "
    "checkpoints/checkpoint best/checkpoint"
).split()


def refuse_unwritable(run_path, exports=False):
    """UserError where something in a run directory keeps training from writing what it has to.

    Args:
        run_path: the run directory.
        exports: whether it also exports.
    """
    run_path = pathlib.Path(run_path)
    for name in (*_DIRECTORIES, "export") if exports else _DIRECTORIES:
        path = run_path / name
        if not path.is_dir() and os.path.lexists(path):
            raise UserError(f"{path} is no directory, and training keeps one there: move it away")
        if path.is_dir() and not os.access(path, os.W_OK | os.X_OK):
            raise UserError(f"{path} is not writable: training writes there")
    for path in (run_path / name for name in _FILES):
        if path.is_dir():
            raise UserError(f"{path} is a directory, and training writes a file there: move it away")
    metrics = run_path / "metrics.jsonl"  # the one file that is appended to; others are replaced
    if metrics.exists() and not os.access(metrics, os.W_OK):
        raise UserError(f"{metrics} is not writable: training appends to it")
