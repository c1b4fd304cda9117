"""The files of a run's checkpoints. Standard library only.

A checkpoint ckpt-8 is ckpt-8.data-00000-of-00001 and ckpt-8.index. TensorFlow writes the second in place, so that a
process that is killed may leave a part of it: here both are written in .ckpt-8.part and moved, the index last. The
directory itself is the list of them: the file `checkpoint` is for TensorFlow's own tools and may be lost or cut.
"""

import os
import pathlib
import re
import shutil

from problems import textio

_INDEX = re.compile(r"ckpt-(\d+)\.index")
_DATA = re.compile(r"(ckpt-\d+)\.data-\d+-of-\d+")
_TEMPORARY = re.compile(r"ckpt-\d+_temp|ckpt-\d+\..*\.tempstate\d*|checkpoint\.tmp.*|\..*\.(part|incomplete)")


def listed(directory):
    """Returns the checkpoints in a directory, as paths without the ending of a file; the last step comes last."""
    directory = pathlib.Path(directory)
    names = os.listdir(directory) if directory.is_dir() else []
    found = [match for match in map(_INDEX.fullmatch, names) if match]
    return [directory / f"ckpt-{match[1]}" for match in sorted(found, key=lambda match: int(match[1]))]


def lost(directory):
    """Returns the checkpoints later than all of `listed` that left traces: a part, or a line of `checkpoint`."""
    directory = pathlib.Path(directory)
    state = directory / "checkpoint"
    traces = os.listdir(directory) if directory.is_dir() else []
    if state.is_file():
        traces.append(state.read_bytes().decode("utf-8", "replace"))
    steps = {int(step) for step in re.findall(r'ckpt-(\d+)(?=[._"])', "\n".join(traces))}
    newest = max((step_of(path) for path in listed(directory)), default=-1)
    return [directory / f"ckpt-{step}" for step in sorted(steps, reverse=True) if step > newest]


def step_of(path):
    """Returns the step in the name of a checkpoint that `listed` found."""
    return int(path.name.removeprefix("ckpt-"))


def remove(path):
    """Removes a checkpoint; its index first, without which the rest counts for nothing."""
    path.with_name(f"{path.name}.index").unlink(missing_ok=True)
    for file in path.parent.glob(f"{path.name}.data-*"):
        file.unlink(missing_ok=True)


def remove_leftovers(directory):
    """Removes what a save that was killed or failed has left in a directory: temporary files, data without index."""
    directory = pathlib.Path(directory)
    whole = {path.name for path in listed(directory)}
    for entry in list(directory.iterdir()) if directory.is_dir() else []:
        data = _DATA.fullmatch(entry.name)
        if _TEMPORARY.fullmatch(entry.name) or (data and data[1] not in whole):
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)


def part_of(path):
    """Returns the directory in which a checkpoint is written before `publish` moves it to its place."""
    return path.with_name(f".{path.name}.part")


def publish(part):
    """Moves what was written in a `part_of` to its place; the disk has it before it is seen there."""
    for file in sorted(part.iterdir(), key=lambda file: file.suffix == ".index"):
        with open(file, "rb") as written:
            os.fsync(written.fileno())
        os.replace(file, part.with_name(file.name))
    part.rmdir()


def write_state(directory):
    """Writes the file `checkpoint`, by which `tf.train.latest_checkpoint` finds what is there."""
    names = [path.name for path in listed(directory)]
    lines = [f'model_checkpoint_path: "{names[-1]}"', *(f'all_model_checkpoint_paths: "{name}"' for name in names)]
    textio.write_lines(pathlib.Path(directory) / "checkpoint", lines)
