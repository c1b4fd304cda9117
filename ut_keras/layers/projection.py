"""A matrix product over the last axis.

Legend: B batch, L length, N inner size, D outer size.
"""

import tensorflow as tf


def project(x, kernel, transpose=False):
    """Returns x [B, L, N] times kernel [N, D] (or [D, N] with `transpose`), [B, L, D].

    As one product of two matrices: a product of rank 3 is slower on CPUs, and the usual Tensordot has no gradient
    under XLA inside a loop when shapes are dynamic.
    """
    inner, outer = kernel.shape[::-1] if transpose else kernel.shape
    product = tf.matmul(tf.reshape(x, [-1, inner]), kernel, transpose_b=transpose)
    return tf.reshape(product, like(x, outer))


def like(x, *last):
    """Returns the shape [B, L, *last] of x [B, L, N] for a reshape, without asking for it where L is static."""
    if x.shape[1]:  # 0 would leave B open
        return [-1, x.shape[1], *last]
    shape = tf.shape(x)
    return [shape[0], shape[1], *last]
