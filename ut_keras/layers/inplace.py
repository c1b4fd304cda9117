"""Writing a part of a tensor inside a loop without copying the rest."""

import tensorflow as tf

from ut_keras.layers.xla import compiles_with_xla


def put(tensor, value, begin, end=None):
    """Returns `tensor` with `value` written into it.

    In place where nothing else holds the tensor, as with a loop's variable (tests/ut_keras/test_inplace.py measures
    it); tf.tensor_scatter_nd_update copies the whole of it on CPUs, but not under XLA, which in turn does not take a
    slice that a loop moves.

    Args:
        tensor: [M, N, ...].
        value: [m, n, ...], of the same type, as wide in the other axes.
        begin: [rank] int32, where `value` begins; 0 in the other axes.
        end: [rank] int32, where it ends, if the caller has that.
    """
    if compiles_with_xla():
        rows, columns = (begin[axis] + tf.range(tf.shape(value)[axis]) for axis in (0, 1))
        cells = tf.stack(tf.meshgrid(rows, columns, indexing="ij"), axis=-1)
        return tf.tensor_scatter_nd_update(tensor, cells, value)
    end = begin + tf.shape(value) if end is None else end
    strides = [1] * len(tensor.shape)
    written = tf.raw_ops.TensorStridedSliceUpdate(input=tensor, begin=begin, end=end, strides=strides, value=value)
    return tf.ensure_shape(written, tensor.shape)


def put_entry(tensor, value, entry):
    """Returns `tensor` [S, ...] with `value` [...] at `entry` (scalar int32) of its first axis; see `put`."""
    if compiles_with_xla():
        return tf.tensor_scatter_nd_update(tensor, [[entry]], value[None])
    return put(tensor, value[None], tf.stack([entry, *[0] * (len(tensor.shape) - 1)]))
