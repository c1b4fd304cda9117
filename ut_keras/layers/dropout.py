"""Stateless dropout: the mask is a function of a seed, so that a recomputed step draws it again."""

import tensorflow as tf

_LEVELS = 1 << 16


def fold_seed(seed, number):
    """Returns the seed of part `number` of what `seed` stands for.

    Args:
        seed: [2] int32, or None (no randomness).
        number: int or scalar int32 tensor.

    Returns:
        [2] int32, or None.
    """
    if seed is None:
        return None
    # Both sides are multiplied, by different odd constants (int32 wraps around), so that the order of two folds
    # counts: place 2 of step 1 is not place 1 of step 2.
    return tf.stack([seed[0] + 1, (seed[1] * -2048144789) ^ (tf.cast(number, tf.int32) * -1640531527 + 40503)])


def dropout(x, rate, seed):
    """Sets elements of `x` to 0 with probability `rate` and scales the others, by the mask of `seed`.

    Two masks of 16 bits come from each 32-bit random number, which halves the cost of the draw; the
    probability is `rate` rounded to a multiple of 1/65536, and the scale is that of the rounded one.

    Args:
        x: float tensor of any shape.
        rate: Python float in [0, 1).
        seed: [2] int32; None: `x` is returned as it is.

    Returns:
        A tensor like `x`.
    """
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout rate {rate} is not in [0, 1)")
    threshold = min(round(rate * _LEVELS), _LEVELS - 1)
    if seed is None or threshold == 0:
        return x
    shape = tf.shape(x)
    size = tf.reduce_prod(shape)
    words = tf.random.stateless_uniform([(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.int32)
    halves = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size]
    keep = tf.cast(tf.reshape(halves, shape), tf.int32) >= threshold
    scale = tf.constant(_LEVELS / (_LEVELS - threshold), x.dtype)
    return x * (tf.cast(keep, x.dtype) * scale)
