"""Small files of SCAN's layout: the archive of its repository, or what it holds."""

import zipfile

_ACTIONS = {"walk": "I_WALK", "run": "I_RUN", "jump": "I_JUMP", "look": "I_LOOK"}
_TIMES = {"": 1, " twice": 2, " thrice": 3}


def lines():
    """Returns 144 lines of the files' form: all commands "A and B" with repetitions."""
    single = [(f"{word}{times}", [action] * _TIMES[times]) for word, action in _ACTIONS.items() for times in _TIMES]
    return [f"IN: {one} and {two} OUT: {' '.join(first + second)}" for one, first in single for two, second in single]


def files(folder, split, train=None, test=None):
    """Returns {path in the repository: text} of one split, by default 120 and 24 commands."""
    found = lines()
    parts = {"train": found[:120] if train is None else train, "test": found[120:] if test is None else test}
    return {f"{folder}/tasks_{part}_{split}.txt": "".join(f"{line}\n" for line in parts[part]) for part in parts}


def write_zip(path, texts):
    """Writes the archive as GitHub gives it and returns its path."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"SCAN-master/{name}", text)
    return path
