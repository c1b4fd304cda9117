"""Reads tests/golden: numbers made with real tensor2tensor (tests/golden/README.md says how)."""

import json
import pathlib

import numpy as np

_DIRECTORY = pathlib.Path(__file__).parent / "golden"


class GoldenFile:
    """The arrays of one .npz file under their names, and its configuration.

    Attributes:
        name: file name without .npz: "lr_schedules", "models/ut_basic_fc".
        meta: the `meta_json` dictionary; {} where there is none.
    """

    def __init__(self, name):
        self.name = name
        with np.load(_DIRECTORY / f"{name}.npz", allow_pickle=False) as file:
            self._arrays = {key: file[key] for key in file.files}
        self.meta = json.loads(str(self._arrays.pop("meta_json"))) if "meta_json" in self._arrays else {}

    def __getitem__(self, key):
        return self._arrays[key]

    def __contains__(self, key):
        return key in self._arrays

    def keys(self):
        """Returns the names of all arrays."""
        return list(self._arrays)

    def under(self, prefix):
        """Returns {rest of the name: array} of the arrays whose name begins with `prefix` + "/"."""
        prefix += "/"
        return {key[len(prefix) :]: value for key, value in self._arrays.items() if key.startswith(prefix)}

    def cases(self):
        """Returns the first parts of all names, in order: ["c0", "c1"]."""
        return list(dict.fromkeys(key.split("/")[0] for key in self._arrays))


def load(name):
    """Returns the `GoldenFile` called `name`: "metrics", "models/ut_act_basic_fc"."""
    return GoldenFile(name)


def load_json(name):
    """Returns the content of one of the .json files: "presets", "bleu", "algorithmic_examples"."""
    return json.loads((_DIRECTORY / f"{name}.json").read_text())


def model_names(*prefixes):
    """Returns the sorted names of the files in golden/models that begin with one of `prefixes`."""
    names = sorted(path.stem for path in (_DIRECTORY / "models").glob("*.npz"))
    return [f"models/{name}" for name in names if not prefixes or name.startswith(prefixes)]
