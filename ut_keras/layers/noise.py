"""Random numbers by counting: each is a hash of the numbers that name it, on every device."""

import tensorflow as tf


def uniform(seed, *numbers):
    """Returns float32 in [0, 1), one for each combination of the numbers.

    No stateless generator of TensorFlow promises that a longer row begins with the shorter one's numbers.

    Args:
        seed: Python int, or scalar int32.
        *numbers: int32 tensors that broadcast against each other; the result has their common shape.
    """
    state = tf.constant(seed & 0xFFFFFFFF, tf.uint32) if isinstance(seed, int) else tf.cast(seed, tf.uint32)
    for number in numbers:
        state = _mix(state ^ _mix(tf.cast(number, tf.uint32) + 2654435769))
    return tf.cast(tf.bitwise.right_shift(state, tf.constant(8, tf.uint32)), tf.float32) / (1 << 24)


def _mix(x):
    """A bijection of uint32 in which each bit of x changes about half of the bits (C. Wellons, "lowbias32")."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, tf.constant(shift, tf.uint32))) * factor
    return x
