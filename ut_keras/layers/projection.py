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
    shape = tf.shape(x)
    product = tf.matmul(tf.reshape(x, [-1, inner]), kernel, transpose_b=transpose)
    return tf.reshape(product, [shape[0], shape[1], outer])
