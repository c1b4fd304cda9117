"""The user's own text files: which they are, and their lines. Standard library only.

A split is one file per part of an example: `train.en` and `train.de`, `dev.txt`, `test.tsv`; each may be compressed
(`train.en.gz`). The development files may also be called val or valid.
"""

import hashlib
import pathlib

from problems import textio
from problems.vocabulary import BLANKS
from ut_keras.errors import UserError

_NAMES = {"train": ("train",), "dev": ("dev", "val", "valid"), "test": ("test",)}
_SUFFIXES = ("", ".gz")
_REQUIRED = ("train", "dev")


def find(task, manual_dir, endings, hint=""):
    """Returns {split: [path of each ending]} of the splits whose files are there.

    Args:
        task: name for messages.
        manual_dir: the folder, or None.
        endings: ("en", "de") for pairs, ("txt",) for lines.
        hint: what else to try where a file is missing.

    Raises:
        UserError: no folder is given, a file of train or dev is missing, a split has not all of its files, or more
            than one file could be meant.
    """
    example = ", ".join(f"{split}.{ending}" for split in _REQUIRED for ending in endings)
    example += f" (and test.{endings[0]}{', ...' if endings[1:] else ''}, if you like)"
    if manual_dir is None:
        raise UserError(f"{task} reads your own files: name their folder with --manual_dir: {example}; .gz accepted")
    folder = pathlib.Path(manual_dir).expanduser()
    if not folder.is_dir():
        raise UserError(f"{task}: --manual_dir={folder} is not a folder")
    found = {}
    for split, names in _NAMES.items():
        paths = [_path(task, folder, names, ending) for ending in endings]
        missing = [f"{names[0]}.{ending}" for ending, path in zip(endings, paths, strict=True) if path is None]
        if not missing:
            # One name for all parts: dev.en and val.de are not known to belong together.
            named = {path.name.split(".")[0]: path for path in paths}
            _refuse_two(task, folder, list(named.values()))
            found[split] = paths
        elif split in _REQUIRED or len(missing) < len(endings):
            also = f" (or {', '.join(names[1:])})" if names[1:] else ""
            raise UserError(f"{task}: --manual_dir={folder} has no {missing[0]}{also}; it needs {example}{hint}")
    return found


def trained_on(splits):
    """Returns those of {name: split} that a run is bound to: a test file may be added, or be another, later."""
    return {name: split for name, split in splits.items() if name in _REQUIRED}


def digest(files):
    """Returns eight characters that stand for the content of {split: [path]}."""
    total = hashlib.sha256()
    for split, paths in files.items():
        for path in paths:
            total.update(split.encode())
            total.update(textio.digest(path))
    return total.hexdigest()[:8]


def read(task, paths):
    """Returns the lines of the files of one split, as tuples with one line of each.

    Raises:
        UserError: a file is empty, blank or not text, or they have not equally many lines; the message has both counts.
    """
    try:
        columns = {path: list(textio.read_lines(path)) for path in paths}
        for path, lines in columns.items():
            for number, line in enumerate(lines, 1):
                if "\0" in line:
                    raise UserError(f"{path}: line {number} holds a zero byte; this is not a text file in UTF-8")
        return together(columns)
    except UserError as error:
        raise UserError(f"{task}: {error}") from None


def together(columns):
    """Returns the lines of {file: list of lines} as tuples with one line of each.

    Raises:
        UserError: a file has no line that is not blank, or they have not equally many; the message has both counts.
    """
    for file, lines in columns.items():
        if not any(line.strip(BLANKS) for line in lines):
            raise UserError(f"{file} {'has blank lines alone' if lines else 'is empty'}")
    if len({len(lines) for lines in columns.values()}) > 1:
        said = " and ".join(f"{file} has {len(lines)}" for file, lines in columns.items())
        raise UserError(f"{said} lines: line by line they have to belong together")
    return list(zip(*columns.values(), strict=True))


def _path(task, folder, names, ending):
    paths = [folder / f"{name}.{ending}{suffix}" for name in names for suffix in _SUFFIXES]
    found = [path for path in paths if path.is_file()]
    _refuse_two(task, folder, found)
    return found[0] if found else None


def _refuse_two(task, folder, paths):
    if len(paths) > 1:
        raise UserError(
            f"{task}: --manual_dir={folder} has {paths[0].name} and {paths[1].name}; keep one of them there"
        )
