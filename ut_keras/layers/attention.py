"""Multi-head attention in two parts: what does not change from step to step, and the step.

Legend: B batch, Q queries, K keys, D hidden size, H heads, E = D/H.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from ut_keras.layers.dropout import dropout
from ut_keras.layers.embedding import dense_gradient
from ut_keras.layers.masks import attention_bias
from ut_keras.layers.projection import project


class AttentionContext(NamedTuple):
    """What one call of attention needs and a loop over depth computes once.

    Attributes:
        queries: [D, D] query kernel times E^-0.5 (with a memory), or [D, 3D] kernels of queries, keys and values.
        output: [D, D] output kernel.
        bias: [B or 1, 1, Q or 1, K], added to the logits; None: all keys are seen.
        keys, values: [B, H, K, E] of the memory; None in self-attention.
        relative_keys, relative_values: [Q, K, E], or None.
    """

    queries: Any
    output: Any
    bias: Any = None
    keys: Any = None
    values: Any = None
    relative_keys: Any = None
    relative_values: Any = None


@keras.saving.register_keras_serializable("ut_keras")
class MultiHeadAttention(keras.layers.Layer):
    """Dot-product attention with H heads, over the sequence itself or over a memory; no biases, as in T2T.

    Args:
        num_heads: H; must divide the hidden size.
        dropout: rate on the attention weights.
        max_relative_position: > 0 adds learned keys and values of the relative position, clipped at this many
            positions (Shaw et al. 2018; T2T dot_product_relative); self-attention only.

    Call arguments:
        x: [B, Q, D] float, the queries (and, without a memory, keys and values).
        memory: [B, K, D] float or None.
        attention_mask: [B, Q, K] or [B, 1, K] bool, True where a key may be seen; None: everywhere.
        memory_mask: [B, K] bool; masks the memory's keys, and zeroes their values, so that a row whose memory is
            all padding reads exactly 0.
        seed: [2] int32 for the dropout; None: no dropout.

    Returns:
        [B, Q, D].

    Example:

    >>> layer = MultiHeadAttention(num_heads=2)
    >>> layer(tf.ones([1, 3, 4])).shape.as_list()
    [1, 3, 4]

    Source: paper section 2.1; T2T layers/common_attention.py.
    """

    def __init__(self, num_heads, dropout=0.0, max_relative_position=0, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.dropout = dropout
        self.max_relative_position = max_relative_position

    def build(self, shape):
        size = shape[-1]
        if size % self.num_heads:
            raise ValueError(f"num_heads={self.num_heads} does not divide the hidden size {size}")
        self._head_size = size // self.num_heads
        for name in ("q", "k", "v", "output_transform"):
            weight = self.add_weight(name=name, shape=(size, size), initializer="glorot_uniform")
            setattr(self, f"_{name}", weight)
        if self.max_relative_position:
            table = (2 * self.max_relative_position + 1, self._head_size)
            self._relative_keys = self.add_weight(
                name="relative_keys", shape=table, initializer="glorot_uniform", autocast=False
            )
            self._relative_values = self.add_weight(
                name="relative_values", shape=table, initializer="glorot_uniform", autocast=False
            )
        self.built = True

    def prepare(self, length=None, memory=None, attention_mask=None, memory_mask=None):
        """Returns the `AttentionContext`; `length` is Q where relative positions are used."""
        dtype = self.compute_dtype
        q, k, v, output = (
            tf.cast(tf.convert_to_tensor(w), dtype) for w in (self._q, self._k, self._v, self._output_transform)
        )
        q = q * self._head_size**-0.5
        bias = None if attention_mask is None else attention_bias(attention_mask, dtype)
        if memory is None:
            context = AttentionContext(tf.concat([q, k, v], axis=1), output, bias)
            if self.max_relative_position:
                limit = self.max_relative_position
                distance = tf.range(length)[None, :] - tf.range(length)[:, None]
                index = tf.clip_by_value(distance, -limit, limit) + limit
                tables = (tf.convert_to_tensor(w) for w in (self._relative_keys, self._relative_values))
                keys, values = (tf.cast(tf.gather(dense_gradient(table), index), dtype) for table in tables)
                context = context._replace(relative_keys=keys, relative_values=values)
            return context
        keys = _split_heads(project(memory, k), self.num_heads)
        values = _split_heads(project(memory, v), self.num_heads)
        if memory_mask is not None:
            bias = attention_bias(memory_mask[:, None, :], dtype)
            values = values * tf.cast(memory_mask, dtype)[:, None, :, None]
        return AttentionContext(q, output, bias, keys, values)

    def attend(self, x, context, seed=None):
        """Returns the attention [B, Q, D] of x [B, Q, D] under a prepared context."""
        projected = project(x, context.queries)
        if context.keys is None:
            queries, keys, values = (_split_heads(part, self.num_heads) for part in tf.split(projected, 3, axis=-1))
        else:
            queries, keys, values = _split_heads(projected, self.num_heads), context.keys, context.values
        logits = tf.matmul(queries, keys, transpose_b=True)
        if context.relative_keys is not None:
            logits += tf.einsum("bhqe,qke->bhqk", queries, context.relative_keys)
        if context.bias is not None:
            logits += context.bias
        weights = tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32)), x.dtype)
        weights = dropout(weights, self.dropout, seed)
        mixed = tf.matmul(weights, values)
        if context.relative_values is not None:
            mixed += tf.einsum("bhqk,qke->bhqe", weights, context.relative_values)
        return project(_join_heads(mixed), context.output)

    def call(self, x, memory=None, attention_mask=None, memory_mask=None, seed=None):
        return self.attend(x, self.prepare(tf.shape(x)[1], memory, attention_mask, memory_mask), seed)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "max_relative_position": self.max_relative_position,
        }


def _split_heads(x, num_heads):
    """[B, L, H*E] -> [B, H, L, E]."""
    shape = tf.shape(x)
    heads = tf.reshape(x, [shape[0], shape[1], num_heads, x.shape[-1] // num_heads])
    return tf.transpose(heads, [0, 2, 1, 3])


def _join_heads(x):
    """[B, H, L, E] -> [B, L, H*E]."""
    shape = tf.shape(x)
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [shape[0], shape[2], x.shape[1] * x.shape[3]])
