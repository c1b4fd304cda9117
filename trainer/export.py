"""Writes a trained run as a numbered SavedModel for serving, text in and text out.

    EXPORT_DIR/1/saved_model.pb, variables/            the graph and its weights
    EXPORT_DIR/1/assets.extra/tf_serving_warmup_requests
    EXPORT_DIR/1/export.json                           what it was made of

Nothing in a version's directory names another place: it may be moved, and needs none of our packages.
"""

import contextlib
import importlib.metadata
import json
import os
import pathlib
import shutil
import tempfile
import time

from trainer.answers import kind_of
from trainer.output_limit import OutputLimit
from trainer.run_dir import space_left
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UserError

DESCRIPTION = "export.json"
_UNFINISHED = "unfinished-"
_YOUNG = 60  # seconds
_PACKAGES = ("tensorflow", "tensorflow-text", "keras", "numpy")


def export(loaded, export_dir=None, options=None, limit=None):
    """Exports a run to `<export_dir>/<number>/`, where number is one above those that are there.

    A model server that watches `export_dir` never sees half an export: it is written under a
    temporary name, which is no number, and renamed.

    Args:
        loaded: `trainer.load(...)`.
        export_dir: None: `export` in the run directory.
        options: `DecodingOptions`, fixed in the export; None: greedy search.
        limit: `OutputLimit`, fixed in the export; None: the problem's own.

    Returns:
        pathlib.Path of the new version's directory.

    Raises:
        UsageError: the options do not fit the problem.
        UserError: `export_dir` is a file, or cannot be written, or the disk is full.
    """
    from trainer.quiet import silence
    from trainer.warmup import warmup_batches, write_warmup
    from ut_keras.serving import SIGNATURE, TextModel

    problem, options = loaded.problem, options or DecodingOptions()
    options.check(kind_of(problem))
    limit = limit or OutputLimit(problem)
    export_dir = pathlib.Path(export_dir or pathlib.Path(loaded.output_dir) / "export").expanduser()
    _remove_leftovers(export_dir)
    temporary = _temporary_directory(export_dir)
    held = _hold(temporary)
    try:
        with silence():  # sentencepiece, made for the graph, says that it does not normalise
            coders = problem.text_encoder(), problem.text_decoder()
        module = TextModel(loaded.model, problem.features, *coders, limit, options)
        module.save(temporary)
        write_warmup(temporary, warmup_batches(problem), SIGNATURE)
        text = json.dumps(describe(loaded, module, options, limit, custom_operations(temporary)), indent=1)
        (temporary / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
        temporary.chmod(0o755)  # mkdtemp's 0700 would lock out a server that runs as another user
        return _rename_to_next(temporary, export_dir)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, (OSError, *_disk_errors())):
            reason = getattr(error, "strerror", None) or str(error).rpartition("; ")[2]
            raise UserError(f"cannot write the export {export_dir}: {reason} ({space_left(export_dir)})") from None
        raise
    finally:
        if held is not None:
            os.close(held)


def describe(loaded, module, options, limit, operations):
    """Returns what export.json says: all that the graph alone does not tell.

    Args:
        loaded: `Loaded`.
        module: `TextModel`.
        options, limit: as for `export`.
        operations: names of the graph's operations that are not TensorFlow's own.
    """
    import ut_keras

    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {
        "problem": loaded.problem.name,
        "problem_args": loaded.problem.args,
        "data_fingerprint": loaded.problem.fingerprint,
        "model": getattr(loaded.hparams, "model", None),
        "step": loaded.step,
        "checkpoint": loaded.checkpoint and str(loaded.checkpoint),
        "decoding": options.to_dict(),
        "limits": {"extra_length": limit.extra_length, "max_output_length": limit.max_output_length},
        "signature": module.signature,
        "custom_operations": operations,
        "versions": {"ut_keras": ut_keras.__version__, **versions},
    }


def custom_operations(directory):
    """Returns the names of a SavedModel's operations that are not TensorFlow's own (tensorflow-text's), sorted."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((pathlib.Path(directory) / "saved_model.pb").read_bytes())
    used = {op.name for graph in saved.meta_graphs for op in graph.meta_info_def.stripped_op_list.op}
    return sorted(name for name in used if not hasattr(tf.raw_ops, name))


def _temporary_directory(export_dir):
    if export_dir.exists() and not export_dir.is_dir():
        raise UserError(f"--export_dir={export_dir} is not a directory")
    try:
        export_dir.mkdir(parents=True, exist_ok=True)
        return pathlib.Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=export_dir))
    except OSError as error:
        raise UserError(f"--export_dir={export_dir} cannot be written: {error.strerror or error}") from None


def _disk_errors():
    """Returns what TensorFlow raises where a file cannot be written."""
    from tensorflow import errors

    return errors.ResourceExhaustedError, errors.PermissionDeniedError


def _hold(directory):
    """Returns an open file that says, until it is closed or the process killed, that a directory is being written.

    None where another process holds it, or where there are no such locks.
    """
    try:
        import fcntl

        place = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(place)
            return None
        return place
    except (ImportError, OSError):
        return None


def _remove_leftovers(export_dir):
    """Removes what exports that were killed have left; not what is so young that it may not be held yet."""
    for directory in export_dir.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):  # another export ends
            held = _hold(directory) if time.time() - directory.stat().st_mtime > _YOUNG else None
            if held is not None:
                shutil.rmtree(directory, ignore_errors=True)
                os.close(held)


def _rename_to_next(temporary, export_dir):
    """Another export may take the same number first; then the next one is tried."""
    numbers = [int(entry.name) for entry in export_dir.iterdir() if entry.name.isdecimal()]
    for number in range(max(numbers, default=0) + 1, max(numbers, default=0) + 100):
        target = export_dir / str(number)
        try:
            os.rename(temporary, target)
            return target
        except OSError:
            if not target.exists():
                raise
    raise UserError(f"{export_dir}: other exports took every number")
