"""Masks as additive attention biases.

Legend: B batch, L length (Q queries, K keys). Boolean masks are True where something is real or may be seen.
"""

import tensorflow as tf


def sequence_mask(ids):
    """Returns where a sequence is real: ids [B, L] or sentences [B, L, W] int -> [B, L] bool."""
    real = tf.not_equal(ids, 0)
    return real if ids.shape.rank == 2 else tf.reduce_any(real, axis=-1)


def causal_mask(length):
    """Returns [1, L, L] bool: query i may see keys 0..i."""
    return tf.range(length)[None, :, None] >= tf.range(length)[None, None, :]


def up_to_last(mask):
    """Returns [B, L] bool: all positions up to the last one where mask [B, L] is True, whatever stands between."""
    return tf.cumsum(tf.cast(mask, tf.int32), axis=1, reverse=True) > 0


def attention_bias(attention_mask, dtype):
    """Returns what is added to attention logits: 0 where a key may be seen, a very negative number elsewhere.

    A row with no visible key stays finite: its weights are then even.

    Args:
        attention_mask: [B, Q, K] or [B, 1, K] bool.
        dtype: type of the logits; float16 cannot hold -1e9.

    Returns:
        [B, 1, Q, K] or [B, 1, 1, K] of `dtype`.
    """
    lowest = -3e4 if tf.as_dtype(dtype) == tf.float16 else -1e9
    return tf.where(attention_mask, tf.constant(0, dtype), tf.constant(lowest, dtype))[:, None]
