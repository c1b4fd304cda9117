"""Paths of checkpoints that TensorFlow takes for patterns. Standard library only."""

import pathlib
import re
import shutil
import tempfile
import weakref

_PATTERN = re.compile(r"[\[\\*?]")


def readable_path(path, owner):
    """Returns the path of a checkpoint as TensorFlow can read it, while there is `owner`.

    A directory "lr[1]" TensorFlow writes to, but reads as a pattern: there the path goes through a link.

    Args:
        path: a checkpoint's, without the ending of a file.
        owner: the object with which the link is removed.
    """
    if not _PATTERN.search(str(path)):
        return str(path)
    path = pathlib.Path(path).absolute()
    directory = tempfile.mkdtemp()
    weakref.finalize(owner, shutil.rmtree, directory, ignore_errors=True)
    link = pathlib.Path(directory) / "checkpoints"
    link.symlink_to(path.parent)
    return str(link / path.name)
