"""Hard attention: softmax weights of which only the largest are left.

Legend: B batch, H heads, Q queries, K keys.
"""

import tensorflow as tf

# Weights that differ by less than this share are equal: of equal keys, products in 32 bits leave such differences.
_ROUNDING = 1e-5
_SMALLEST_SUM = 1e-6


def harden(weights, k):
    """Returns the weights less the k-th largest of them, negative ones 0, the rest scaled to the sum 1.

    Equal weights count once, so that more than k - 1 may be left. Where a query has fewer than k different weights
    nothing is subtracted. Keys that may not be seen have weight 0, and change nothing however many they are.

    Args:
        weights: [B, H, Q, K] float32, softmax weights.
        k: Python int, at least 2: nothing would be left of 1.

    Returns:
        [B, H, Q, K] float32. The k-th largest is a constant to the gradient.

    Source: T2T layers/common_attention.py (harden_attention_weights), common_layers.py (top_kth_iterative).
    """
    left = tf.nn.relu(weights - _kth_largest(tf.stop_gradient(weights), k))
    return left / tf.maximum(tf.reduce_sum(left, axis=-1, keepdims=True), _SMALLEST_SUM)


def _kth_largest(weights, k):
    """Returns [B, H, Q, 1], the k-th largest different weight of each query, 0 where there is none."""

    def without_the_largest(rest):
        largest = tf.reduce_max(rest, axis=-1, keepdims=True)
        return (tf.where(rest < largest * (1.0 - _ROUNDING), rest, 0.0),)

    # tf.math.top_k is slower (k 2 to 16, CPU), counts equal weights apart and refuses k above K.
    (rest,) = tf.while_loop(lambda rest: True, without_the_largest, (weights,), maximum_iterations=k - 1)
    return tf.stop_gradient(tf.reduce_max(rest, axis=-1, keepdims=True))
