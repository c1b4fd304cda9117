"""What a checkpoint of ours holds, by name, and how it goes into variables and files: all of it or nothing."""

import contextlib
import re

import tensorflow as tf

from trainer import checkpoint_files
from trainer.run_dir import space_left
from ut_keras import optimizers
from ut_keras.errors import UserError
from ut_keras.readable_path import readable_path

_DAMAGED = (tf.errors.OpError, IndexError)  # raised for files that are cut off, missing or of other bytes
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


class DamagedError(UserError):
    """A checkpoint that cannot be read."""

    def __init__(self, path, reason):
        super().__init__(f"checkpoint {path} is damaged: {reason}")


class Reader:
    """The tensors of a checkpoint, read one at a time.

    Args:
        path: the checkpoint.

    Attributes:
        shapes: {name: list of int}: "model/007/body/self_attention/q", "step".
        readable: the checkpoint's path as TensorFlow can read it, while there is this object.

    Raises:
        DamagedError: here, and at each tensor.
    """

    def __init__(self, path):
        self.path = path
        self.readable = readable_path(path, self)
        with _reading(path):
            self._reader = tf.train.load_checkpoint(self.readable)
            shapes = self._reader.get_variable_to_shape_map()
        saved = [name for name in shapes if name.endswith(_SUFFIX)]
        self._saved = {name.removesuffix(_SUFFIX).replace(".S", "/"): name for name in saved}
        self.shapes = {name: shapes[saved] for name, saved in sorted(self._saved.items())}

    def tensor(self, name):
        """Returns a tensor as a numpy array."""
        with _reading(self.path):
            return self._reader.get_tensor(self._saved[name])

    def check(self, parts):
        """Reads all that `restore` would read for some parts, so that what is damaged of it is raised."""
        with _reading(self.path):
            self._reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
        for name in self.shapes:
            if name.partition("/")[0] in parts:
                self.tensor(name)

    def model_names(self):
        """Returns {key of `model_variables`: name} of the weights, their moving averages where there are any."""
        return {
            name.partition("/")[2]: name
            for part in ("model/", "averaged/")
            for name in self.shapes
            if name.startswith(part)
        }


def model_variables(model):
    """Returns {name: tf.Variable} of a model, in its own order: "007/body/self_attention/q".

    The seed of its random numbers is left out: training derives its own from the step. Numbers that Keras adds
    to a name are dropped: they count how often a process has built such a layer.
    """
    return {name: variable.value for name, variable in _named(model).items()}


def averaged_variables(model, optimizer):
    """Returns {name: tf.Variable} of the weights' moving averages, named as by `model_variables`; {} without any."""
    names = {id(variable): name for name, variable in _named(model).items()}
    averages = optimizers.averages(optimizer)
    if averages is None:
        return {}
    pairs = zip(model.trainable_variables, averages, strict=True)
    return {names[id(variable)]: average.value for variable, average in pairs}


def refuse_other_architecture(reader, parts):
    """UserError where a variable of a part of a checkpoint is missing on either side, or of another shape.

    Args:
        reader: `Reader`.
        parts: {"step": variable, "model": {name: variable}, ...}.
    """
    ours = {}
    for part, value in parts.items():
        named = value if isinstance(value, dict) else {"": value}
        ours.update({f"{part}/{name}".rstrip("/"): variable.shape.as_list() for name, variable in named.items()})
    theirs = {name: shape for name, shape in reader.shapes.items() if name.partition("/")[0] in parts}
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            raise UserError(
                f"checkpoint {reader.path} is of another architecture: {name} is "
                f"{theirs.get(name, 'missing')} there and {ours.get(name, 'missing')} here"
            )


def restore(reader, parts):
    """Restores every variable of `parts`, or none; errors as of `refuse_other_architecture`, and DamagedError."""
    refuse_other_architecture(reader, parts)
    with _reading(reader.path):
        tf.train.Checkpoint(**parts).restore(reader.readable).expect_partial()


def write(path, parts):
    """Writes a checkpoint: all of it or nothing.

    Args:
        path: pathlib.Path of a checkpoint, ckpt-8 in its directory, which is made if need be.
        parts: as for `refuse_other_architecture`.

    Raises:
        UserError: it cannot be written; the message has the reason and the room on the disk.
    """
    part = checkpoint_files.part_of(path)
    try:
        part.mkdir(parents=True, exist_ok=True)
        tf.train.Checkpoint(**parts).write(str(part / path.name))
        checkpoint_files.publish(part)
    except (tf.errors.OpError, OSError) as error:
        checkpoint_files.remove_leftovers(path.parent)
        reason = getattr(error, "strerror", None) or _first_line(error).rpartition("; ")[2]
        raise UserError(f"cannot write checkpoint {path}: {reason} ({space_left(path.parent)})") from None


@contextlib.contextmanager
def _reading(path):
    try:
        yield
    except _DAMAGED as error:
        raise DamagedError(path, _first_line(error)) from None


def _first_line(error):
    """Returns the first line of an error's message without TensorFlow's marks, or its kind where it has none."""
    text = re.sub(r"\{\{.*?\}\} ?| ?\[Op:\w+\].*", "", str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _named(model):
    weights = [variable for variable in model.variables if not variable.path.endswith("seed_generator_state")]
    paths = [re.sub(r"_\d+(?=/|$)", "", variable.path) for variable in weights]
    return {f"{index:03d}/{path}": weights[index] for index, path in enumerate(paths)}
