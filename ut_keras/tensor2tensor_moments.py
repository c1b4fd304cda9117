"""tensor2tensor's optimizer -> ours: the moments from which training goes on.

Adam's are the same arrays. Momentum's accumulator a is Keras' velocity -rate * a: the next update is T2T's, and later
ones as far as the rate stays. Adafactor's factors are running means of squared gradients over rows and columns; where
T2T has more of a variable than we have (shards of a table, axes of length 1 beside which the others are not factored),
our means are the means of its means, and exact.
"""

import numpy as np

from ut_keras.errors import UserError
from ut_keras.tensor2tensor import with_reserved_classes
from ut_keras.tensor2tensor_checkpoint import join_shards, shards

_NAMES = {"adam": "Adam", "momentum": "Momentum", "adafactor": "Adafactor"}


def restore_moments(optimizer, hparams, checkpoint, variables):
    """Gives a built optimizer the moments of a checkpoint and returns what there is to say: "Adam's moments of 42 ...".

    The number of updates is not changed, and nothing is where the moments of a single variable are missing or of
    another shape; the words then say so. UserError where the checkpoint is damaged.

    Args:
        optimizer: built, of `ut_keras.optimizers.from_hparams`, perhaps in a loss scale's wrapper.
        hparams: its `HParams`.
        checkpoint: `T2tCheckpoint`.
        variables: {T2T variable name: our variable}, what `load_weights` returned.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if hparams.optimizer not in _NAMES:
        return f"{hparams.optimizer} has no moments"
    name = _NAMES[hparams.optimizer]
    there = checkpoint.kinds()
    if name not in there:
        return f"a fresh {name}: the checkpoint holds {f'moments of {there[0]}' if there else 'no moments'}"
    moments = checkpoint.moments(name)
    try:
        values = {"Adam": _adam, "Momentum": _momentum, "Adafactor": _adafactor}[name](optimizer, moments, variables)
    except UserError as error:
        return f"a fresh {name}: {error}"
    for slot, value in values:
        slot.assign(value)
    return f"{name}'s moments of {len(variables)} variables"


def _adam(optimizer, moments, variables):
    return _alike(moments[:2], [optimizer._momentums, optimizer._velocities], optimizer, variables)


def _momentum(optimizer, moments, variables):
    rate = float(optimizer.learning_rate)
    found = _alike(moments[:1], [optimizer.momentums], optimizer, variables)
    return [(slot, -rate * value) for slot, value in found]


def _alike(moments, slots, optimizer, variables):
    """Returns [(slot, value)] where each slot has the shape of its variable."""
    if len(moments) != len(slots):
        raise UserError(f"the checkpoint holds {len(moments)} moments of each variable, not {len(slots)}")
    found = []
    for arrays, kept in zip(moments, slots, strict=True):
        arrays = with_reserved_classes(join_shards(arrays), variables)
        for name, variable in variables.items():
            slot = kept[optimizer._get_variable_index(variable)]
            found.append((slot, _fitting(name, arrays.get(name), slot.shape)))
    return found


def _adafactor(optimizer, moments, variables):
    found = []
    momentum = [moments.pop(0)] if optimizer.beta_1 else []
    rows, columns = [*moments, {}, {}][:2]
    if momentum:
        found += _alike(momentum, [optimizer._momentums], optimizer, variables)
    for name, variable in variables.items():
        index = optimizer._get_variable_index(variable)
        row, column = _means(name, rows, columns, tuple(variable.shape))
        if optimizer._rows[index] is None:
            found.append((optimizer._moments[index], _fitting(name, row, variable.shape)))
        else:
            found.append((optimizer._rows[index], _fitting(name, row, optimizer._rows[index].shape)))
            found.append((optimizer._columns[index], _fitting(name, column, optimizer._columns[index].shape)))
    return found


def _means(name, rows, columns, shape):
    """Returns the means over rows and over columns of a variable of ours; of a vector (its second moment, None)."""
    if name in shards(rows):
        row, column = shards(rows)[name], shards(columns).get(name, [])
        sizes = [len(part) for part in row]
        return np.concatenate(row), np.average(column, axis=0, weights=sizes) if column else None
    row, column = rows.get(name), columns.get(name)
    if row is None or column is None or len(shape) < 2:
        return row if column is None or np.size(row) >= np.size(column) else column, None
    # An axis of length 1 among T2T's last two: one of the means is over a single number, and so the moment itself.
    whole = next((one for one in (row, column) if np.size(one) == np.prod(shape)), None)
    if whole is None or min(shape[-2:]) == 1:
        return row, column
    whole = whole.reshape(shape)
    return whole.mean(axis=-1), whole.mean(axis=-2)


def _fitting(name, array, shape):
    if array is None:
        raise UserError(f"the checkpoint has none of {name}")
    if np.size(array) != np.prod(shape, dtype=int):
        raise UserError(f"those of {name} have the shape {np.shape(array)}, and not {tuple(shape)}")
    return np.asarray(array).reshape(shape)
