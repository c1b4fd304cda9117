"""Writes a trained run as a numbered SavedModel for serving, text in and text out."""

import os
import pathlib
import shutil
import tempfile

from ut_keras.errors import UserError


def export(loaded, export_dir=None):
    """Exports a run to `<export_dir>/<number>/`, where number is one above those that are there.

    A model server that watches `export_dir` never sees half an export: it is written under a
    temporary name, which is no number, and renamed.

    Args:
        loaded: `trainer.load(...)`.
        export_dir: None: `export` in the run directory.

    Returns:
        pathlib.Path of the new version's directory.

    Raises:
        UserError: `export_dir` is a file.
    """
    from trainer.quiet import silence
    from ut_keras.serving import TextModel

    problem = loaded.problem
    with silence():  # sentencepiece, made for the graph, says that it does not normalise
        coders = problem.text_encoder(), problem.text_decoder()
    module = TextModel(loaded.model, problem.features, *coders, problem.max_output_length)
    export_dir = pathlib.Path(export_dir or pathlib.Path(loaded.output_dir) / "export")
    if export_dir.exists() and not export_dir.is_dir():
        raise UserError(f"--export_dir={export_dir} is not a directory")
    export_dir.mkdir(parents=True, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix="unfinished-", dir=export_dir)
    try:
        module.save(temporary)
        os.chmod(temporary, 0o755)  # mkdtemp's 0700 would lock out a server that runs as another user
        return _rename_to_next(temporary, export_dir)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _rename_to_next(temporary, export_dir):
    """Another export may take the same number first; then the next one is tried."""
    numbers = [int(entry.name) for entry in export_dir.iterdir() if entry.name.isdecimal()]
    for number in range(max(numbers, default=0) + 1, max(numbers, default=0) + 100):
        target = export_dir / str(number)
        if not target.exists():
            os.rename(temporary, target)
            return target
    raise UserError(f"{export_dir}: other exports took every number")
