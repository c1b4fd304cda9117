"""Reads tests/golden: numbers made with real tensor2tensor (tests/golden/README.md says how).

Whatever is read is remembered: `test_golden_files` asks for every number whether some test has looked at it.
"""

import atexit
import json
import os
import pathlib
from collections.abc import Mapping

import numpy as np

_DIRECTORY = pathlib.Path(__file__).parent / "golden"
RECORD = "UT_KERAS_GOLDEN_RECORD"  # environment variable: the file to write the keys to that a process has read
_read = set()


class Recorded(Mapping):
    """Values under their names; those that are looked at are remembered as "<path><name>".

    Args:
        values: dict, of dicts and of lists of dicts in turn where it is of JSON.
        path: how the names of its values begin: "bleu:id_bleu/0/".
    """

    def __init__(self, values, path):
        self._values, self._path = values, path

    def __getitem__(self, key):
        value, path = self._values[key], f"{self._path}{key}"
        if isinstance(value, dict):
            return Recorded(value, f"{path}/")
        if _is_table(value):
            return [Recorded(row, f"{path}/{number}/") for number, row in enumerate(value)]
        _read.add(path)
        return value

    def __contains__(self, key):
        return key in self._values

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)


class GoldenFile:
    """The arrays of one .npz file under their names, and its configuration.

    Attributes:
        name: file name without .npz: "lr_schedules", "models/ut_basic_fc".
        meta: the `meta_json` dictionary; {} where there is none.
    """

    def __init__(self, name):
        self.name = name
        self._arrays = _arrays(name)
        self.meta = json.loads(str(self._arrays.pop("meta_json"))) if "meta_json" in self._arrays else {}

    def __getitem__(self, key):
        return Recorded(self._arrays, f"{self.name}:")[key]

    def __contains__(self, key):
        return key in self._arrays

    def keys(self):
        """Returns the names of all arrays."""
        return list(self._arrays)

    def under(self, prefix):
        """Returns {rest of the name: array} of the arrays whose name begins with `prefix` + "/"."""
        prefix += "/"
        found = {key.removeprefix(prefix): value for key, value in self._arrays.items() if key.startswith(prefix)}
        return Recorded(found, f"{self.name}:{prefix}")

    def cases(self):
        """Returns the first parts of all names, in order: ["c0", "c1"]."""
        return list(dict.fromkeys(key.split("/")[0] for key in self._arrays))


def load(name):
    """Returns the `GoldenFile` called `name`: "metrics", "models/ut_act_basic_fc"."""
    return GoldenFile(name)


def load_json(name):
    """Returns the content of one of the .json files: "presets", "bleu", "algorithmic_examples"."""
    return Recorded(_json(name), f"{name}:")


def model_names(*prefixes):
    """Returns the sorted names of the files in golden/models that begin with one of `prefixes`."""
    names = sorted(path.stem for path in (_DIRECTORY / "models").glob("*.npz"))
    return [f"models/{name}" for name in names if not prefixes or name.startswith(prefixes)]


def every_key():
    """Returns the set of all names that `Recorded` may remember, of all files: "metrics:c0/logits"."""
    keys = set()
    for path in _DIRECTORY.rglob("*.npz"):
        name = path.relative_to(_DIRECTORY).with_suffix("").as_posix()
        with np.load(path, allow_pickle=False) as file:
            keys.update(f"{name}:{key}" for key in file.files if key != "meta_json")
    for path in _DIRECTORY.glob("*.json"):
        keys.update(_leaves(_json(path.stem), f"{path.stem}:"))
    return keys


def _arrays(name):
    with np.load(_DIRECTORY / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _json(name):
    return json.loads((_DIRECTORY / f"{name}.json").read_text())


def _is_table(value):
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _leaves(values, path):
    """Yields the names of the values of a dictionary of JSON, as `Recorded` has them."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}/")
        elif _is_table(value):
            for number, row in enumerate(value):
                yield from _leaves(row, f"{path}{key}/{number}/")
        else:
            yield f"{path}{key}"


if RECORD in os.environ:
    atexit.register(lambda: pathlib.Path(os.environ[RECORD]).write_text("\n".join(sorted(_read))))
