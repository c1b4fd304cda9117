"""The files of SCAN: where they are, and what stands in them.

Each split of the release is two files, `tasks_train_<split>.txt` and `tasks_test_<split>.txt`, of lines
`IN: jump twice OUT: I_JUMP I_JUMP`. All splits partition the same 20,910 commands.
"""

import collections
import importlib.resources

import numpy as np

from problems.sources import Official, Source
from ut_keras.errors import UserError

URL = "https://github.com/brendenlake/SCAN/archive/refs/heads/master.zip"

# The language, closed: every word of a command, every action, and the most actions of a command.
WORDS = tuple("after and around jump left look opposite right run thrice turn twice walk".split())
ACTIONS = tuple("I_JUMP I_LOOK I_RUN I_TURN_LEFT I_TURN_RIGHT I_WALK".split())
MOST_ACTIONS = 48


def official(split):
    """Returns the published form of a split: its two files in the archive of the repository."""
    return Official(url=URL, file="SCAN-master.zip", members=_names(split))


def shipped():
    """Returns the source of the simple split, which is part of this package."""
    return Source(importlib.resources.files("problems") / "data" / "scan" / "simple_split")


def read_splits(source, split, dev_percent, seed):
    """Returns {"train", "dev", "test": list of {"inputs", "targets"}}.

    The dev split is `dev_percent` of the commands that stand once in the training file, drawn with `seed`. A command
    that is repeated there (jump alone, a tenth of addprim_jump) is what the split teaches and stays in train.

    Raises:
        UserError: a file is missing, a line is not of the format, or no command is left for a split.
    """
    train, test = (_read(source, name) for name in _names(split))
    repetitions = collections.Counter(row["inputs"] for row in train)
    single = [index for index, row in enumerate(train) if repetitions[row["inputs"]] == 1]
    count = min(max(1, len(train) * dev_percent // 100), len(single))
    held_out = set(np.random.default_rng(seed).permutation(single)[:count].tolist())
    splits = {
        "train": [row for index, row in enumerate(train) if index not in held_out],
        "dev": [train[index] for index in sorted(held_out)],
        "test": test,
    }
    for name, rows in splits.items():
        if not rows:
            raise UserError(f"{source.path}: its files leave no command for the {name} split")
    return splits


def _names(split):
    return tuple(f"tasks_{part}_{split}.txt" for part in ("train", "test"))


def _read(source, name):
    rows = []
    for number, line in enumerate(source.lines(name), 1):
        words, sign, actions = line.removeprefix("IN: ").partition(" OUT: ")
        words, actions = words.split(), actions.split()
        if not line.startswith("IN: ") or not sign or not words or not actions:
            raise UserError(f"{name}: line {number} is not 'IN: command OUT: actions': {line[:60]!r}")
        unknown = [word for word in words if word not in WORDS] + [word for word in actions if word not in ACTIONS]
        if unknown:
            raise UserError(f"{name}: line {number}: {unknown[0]!r} is no word of SCAN")
        if len(actions) > MOST_ACTIONS:
            raise UserError(f"{name}: line {number}: {len(actions)} actions, and SCAN has at most {MOST_ACTIONS}")
        rows.append({"inputs": " ".join(words), "targets": " ".join(actions)})
    return rows
