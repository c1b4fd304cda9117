"""What the workers tell each other outside of the training step.

One primitive carries all of it: a float32 sum over all replicas, which every kind of device has. Text goes as bytes,
one number each; a sum of one value and zeros is that value to the bit. With one worker every function returns at once.

Shapes: W workers, N numbers.
"""

import json

import numpy as np
import tensorflow as tf

from ut_keras.errors import UserError

CHUNK = 1 << 24  # numbers in one sum: 64 MB
_FLOATS = (tf.float32, tf.bfloat16, tf.float16)  # which float32 holds to the bit


def barrier(devices):
    """Returns when all workers have called it, however long that takes."""
    if devices.workers > 1:
        _sum(devices, np.zeros([1], np.float32))


def gather(devices, text):
    """Returns the list of all workers' `text`s, in the order of the workers."""
    if devices.workers == 1:
        return [text]
    own = np.frombuffer(text.encode(), np.uint8)
    lengths = _rows(devices, np.frombuffer(np.int64(len(own)).tobytes(), np.uint8))
    lengths = [int(np.frombuffer(row.tobytes(), np.int64)[0]) for row in lengths]
    rows = _rows(devices, np.pad(own, [0, max(lengths) + 1 - len(own)]))  # TensorFlow cannot add up nothing
    return [row[:length].tobytes().decode() for row, length in zip(rows, lengths)]


def from_chief(devices, value):
    """Returns the chief's `value` on every worker.

    Args:
        devices: `trainer.devices.Devices`.
        value: what JSON can hold: numbers (exactly), booleans, strings, None, and lists and dicts of these. The
            other workers' values are not looked at.
    """
    return json.loads(gather(devices, json.dumps(value) if devices.chief else "")[0])


def agree(devices, values):
    """UserError, the same on all workers, when one of them has another value than the chief.

    Args:
        devices: `trainer.devices.Devices`.
        values: {name: value} of what must be equal, with the same names on every worker; values as JSON holds them.
    """
    texts = gather(devices, json.dumps({name: _canonical(value) for name, value in values.items()}, sort_keys=True))
    chief, *others = [json.loads(text) for text in texts]
    for index, other in enumerate(others, 1):
        for name in sorted(chief.keys() | other.keys()):
            ours, theirs = other.get(name, "nothing"), chief.get(name, "nothing")
            if ours != theirs:
                short = len(ours) + len(theirs) <= 200
                what = f"{name}={ours}, not {theirs}" if short else f"other {name} than the chief"
                raise UserError(
                    f"{devices.cluster.named(index)} has {what}: give all workers the same flags, data and versions"
                )


def broadcast(devices, variables):
    """Gives the variables of all workers the chief's values.

    Args:
        devices: `trainer.devices.Devices`.
        variables: Keras or `tf` variables of floats, integers or booleans, the same list on all workers.
    """
    if devices.workers == 1:
        return
    variables = [variable for variable in variables if np.prod(variable.shape)]  # TensorFlow cannot add up nothing
    floats = [variable for variable in variables if tf.as_dtype(variable.dtype) in _FLOATS]
    others = [variable for variable in variables if tf.as_dtype(variable.dtype) not in _FLOATS]
    group, size = [], 0
    for variable in floats:
        group.append(variable)
        size += int(np.prod(variable.shape))
        if size >= CHUNK:
            _broadcast_floats(devices, group)
            group, size = [], 0
    if group:
        _broadcast_floats(devices, group)
    for variable in others:
        value = np.asarray(variable.numpy())
        own = np.frombuffer(value.tobytes(), np.uint8)
        chiefs = _chiefs(devices, own.astype(np.float32)).astype(np.uint8)
        _assign(devices, variable, np.frombuffer(chiefs.tobytes(), value.dtype).reshape(value.shape))


def _broadcast_floats(devices, variables):
    """Broadcasts variables of 32 bits or less as one vector."""
    values = [np.asarray(variable.numpy()) for variable in variables]
    chiefs = _chiefs(devices, np.concatenate([value.astype(np.float32).ravel() for value in values]))
    places = np.cumsum([value.size for value in values])[:-1]
    for variable, value, flat in zip(variables, values, np.split(chiefs, places)):
        _assign(devices, variable, flat.reshape(value.shape).astype(value.dtype))


def _assign(devices, variable, value):
    if not devices.chief:
        with devices.strategy.scope():
            variable.assign(value)


def _chiefs(devices, vector):
    """Returns the chief's [N] float32 vector on every worker."""
    parts = np.array_split(vector, max(1, -(-len(vector) // CHUNK)))
    return np.concatenate([_sum(devices, part if devices.chief else np.zeros_like(part)) for part in parts])


def _rows(devices, own):
    """Returns [W, N] uint8: the [N] bytes of every worker."""
    table = np.zeros([devices.workers, len(own)], np.float32)
    table[devices.worker] = own
    return _sum(devices, table).astype(np.uint8)


def _sum(devices, array):
    """Returns the float32 sum over all workers of their arrays of one shape.

    One replica of each worker brings the array and the others zeros: nothing has to be divided, no bit is lost.
    """

    def bring(context):
        first = context.replica_id_in_sync_group % devices.replicas_here == 0
        return tf.constant(array if first else np.zeros_like(array), tf.float32)

    brought = devices.strategy.experimental_distribute_values_from_function(bring)
    return devices.strategy.reduce("SUM", brought, axis=None).numpy()


def _canonical(value):
    return json.dumps(value, sort_keys=True, default=str)
