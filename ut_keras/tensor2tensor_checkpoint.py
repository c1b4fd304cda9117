"""The files of tensor2tensor's (TensorFlow 1's) checkpoints: variables by name, shards joined, optimizer's moments.

TensorFlow is imported when a checkpoint is read.
"""

import pathlib
import re

import numpy as np

from ut_keras.errors import UserError
from ut_keras.readable_path import readable_path
from ut_keras.tensor2tensor_hparams import MODELS

_STATE = re.compile(r'^model_checkpoint_path: "(.*)"', re.MULTILINE)
_ENDING = re.compile(r"\.(index|meta|data-\d+-of-\d+)$")
_NUMBERED = re.compile(r"(.*-(\d+))\.index")
# Momentum, Adam and Adam_1, Adafactor to Adafactor_2 (after the optimizer; in the order in which it makes them).
_SLOT = re.compile(r"(?:training/)?(.+)/((?:Adam|AdamW|Adafactor|Momentum))(?:_(\d+))?")
_SHARD = re.compile(r"(.+/weights)_(\d+)")


def find_checkpoint(path):
    """Returns the checkpoint at a path, or the one that a directory's file `checkpoint` names, as a pathlib.Path.

    A directory that was moved is taken as it is: what counts of the name in its file is the last part. Without that
    file the checkpoint of the highest number is taken.

    Raises:
        UserError: there is none.
    """
    path = pathlib.Path(path).expanduser()
    if path.is_dir():
        state = path / "checkpoint"
        named = _STATE.search(state.read_bytes().decode("utf-8", "replace")) if state.is_file() else None
        numbered = [match for match in map(_NUMBERED.fullmatch, (file.name for file in path.iterdir())) if match]
        name = max(numbered, key=lambda match: int(match[2]))[1] if numbered else ""
        name = pathlib.Path(named[1]).name if named else name
        if not name:
            raise UserError(f"{path} holds no checkpoint of tensor2tensor's: no file checkpoint, and no ...-1000.index")
        path = path / name
    path = path.with_name(_ENDING.sub("", path.name))
    if not path.with_name(f"{path.name}.index").is_file():
        raise UserError(
            f"{path} is not a checkpoint: there is no {path.name}.index; name a directory, or a file as "
            "model.ckpt-1000.index"
        )
    return path


class T2tCheckpoint:
    """A checkpoint that tensor2tensor has written.

    Args:
        path: what `find_checkpoint` returned.

    Attributes:
        path: the same.
        model: T2T's name of the model, the first part of its variables' names.
        global_step: updates made, an int; None where the checkpoint does not say.

    Raises:
        UserError: it cannot be read, or holds no model of `MODELS`, or several.
    """

    def __init__(self, path):
        import tensorflow as tf

        self.path = path
        try:
            self._reader = tf.train.load_checkpoint(readable_path(path, self))
        except (ValueError, tf.errors.OpError) as error:
            raise UserError(f"{path} is not a checkpoint: {error}".splitlines()[0]) from error
        self._names = sorted(self._reader.get_variable_to_shape_map())
        scopes = {name.split("/")[0] for name in self._names}
        models = sorted(scopes & set(MODELS.values()))
        if len(models) != 1:
            found = ", ".join(models or sorted(scopes)[:8]) or "nothing"
            raise UserError(f"{path} holds {found}, and not the variables of one model: {', '.join(MODELS.values())}")
        self.model = models[0]
        self.global_step = int(self._read("global_step")) if "global_step" in self._names else None
        if self.global_step is not None and self.global_step < 0:
            raise UserError(f"{path} is damaged: its global_step is {self.global_step}")

    def weights(self):
        """Returns {name: array} of the model's variables, tables in shards as they are (`join_shards`).

        Raises:
            UserError: the file is damaged, or a weight is not finite.
        """
        own = [name for name in self._names if name.split("/")[0] == self.model and not _SLOT.fullmatch(name)]
        found = {name: self._read(name) for name in own}
        for name, array in found.items():
            if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                raise UserError(f"{self.path}: {name} is not finite: take a checkpoint of before its training failed")
        return found

    def moments(self, optimizer):
        """Returns the moments of an optimizer, [{name of a variable: array}] in the order in which it makes them.

        Args:
            optimizer: "Adam" (m, v), "Momentum" (accumulator), "Adafactor" (m if it has momentum; then the means of
                rows and of columns, or for vectors v).

        Names and arrays are those of the shards.
        """
        found = {}
        for name in self._names:
            slot = _SLOT.fullmatch(name)
            if slot and slot[2] == optimizer and slot[1].split("/")[0] == self.model:
                found.setdefault(int(slot[3] or 0), {})[slot[1]] = self._read(name)
        return [found[number] for number in sorted(found)]

    def _read(self, name):
        import tensorflow as tf

        try:
            return self._reader.get_tensor(name)
        except (IndexError, ValueError, tf.errors.OpError) as error:  # cut off: "Read less bytes than requested"
            words = f"{self.path} is damaged: {name} cannot be read ({error})"
            raise UserError(" ".join(words.split())) from error

    def kinds(self):
        """Returns the names of the optimizers that have moments here."""
        return sorted({slot[2] for slot in map(_SLOT.fullmatch, self._names) if slot})


def join_shards(arrays):
    """Returns {name: array} with row shards .../weights_0, .../weights_1 and so on joined to one .../weights."""
    joined = {name: array for name, array in arrays.items() if not _SHARD.fullmatch(name)}
    return joined | {base: np.concatenate(parts) for base, parts in shards(arrays).items()}


def shards(arrays):
    """Returns {name: [array of each row shard]} of those that have shards; UserError where one is missing."""
    found = {}
    for name, array in arrays.items():
        shard = _SHARD.fullmatch(name)
        if shard:
            found.setdefault(shard[1], {})[int(shard[2])] = array
    for base, parts in found.items():
        if sorted(parts) != list(range(len(parts))):
            raise UserError(f"the shards of {base} are not complete: {sorted(parts)}")
    return {base: [parts[index] for index in range(len(parts))] for base, parts in found.items()}
