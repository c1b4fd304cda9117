"""Multi-head attention in two parts: what does not change from step to step, and the step.

Legend: B batch, Q queries, K keys, D hidden size, H heads, E = D/H.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from ut_keras.layers.dropout import dropout
from ut_keras.layers.embedding import dense_gradient
from ut_keras.layers.hard_attention import harden
from ut_keras.layers.masks import attention_bias
from ut_keras.layers.projection import like, project


class AttentionContext(NamedTuple):
    """What one call of attention needs and a loop over depth computes once.

    Attributes:
        queries: [D, D] query kernel times E^-0.5 (with a memory), or [D, 3D] kernels of queries, keys and values.
        output: [D, D] output kernel.
        bias: [B or 1, 1, Q or 1, K], added to the logits; None: all keys are seen.
        keys, values: [B, H, E, K] and [B, H, K, E] of the memory; None in self-attention.
        relative_keys, relative_values: [Q, K, E], or None.
        pairs: [D, 2D] kernels of keys and values alone, where queries are not computed for every position.
    """

    queries: Any
    output: Any
    bias: Any = None
    keys: Any = None
    values: Any = None
    relative_keys: Any = None
    relative_values: Any = None
    pairs: Any = None


@keras.saving.register_keras_serializable("ut_keras")
class MultiHeadAttention(keras.layers.Layer):
    """Dot-product attention with H heads, over the sequence itself or over a memory; no biases, as in T2T.

    Args:
        num_heads: H; must divide the hidden size.
        dropout: rate on the attention weights.
        max_relative_position: > 0 adds learned keys and values of the relative position, clipped at this many
            positions (Shaw et al. 2018; T2T dot_product_relative); self-attention only.
        hard_attention_k: > 1 subtracts the k-th largest weight from all of a query's and leaves what is above 0,
            see `hard_attention.harden`; 0: all keys are read.

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

    def __init__(self, num_heads, dropout=0.0, max_relative_position=0, hard_attention_k=0, **kwargs):
        super().__init__(**kwargs)
        if hard_attention_k < 0 or hard_attention_k == 1:
            raise ValueError(
                f"hard_attention_k={hard_attention_k} is not 0 (off) or at least 2: 1 would leave no weight"
            )
        self.num_heads = num_heads
        self.dropout = dropout
        self.max_relative_position = max_relative_position
        self.hard_attention_k = hard_attention_k

    def build(self, shape):
        size = shape[-1]
        if size % self.num_heads:
            raise ValueError(f"num_heads={self.num_heads} does not divide the hidden size {size}")
        self.head_size = size // self.num_heads
        for name in ("q", "k", "v", "output_transform"):
            weight = self.add_weight(name=name, shape=(size, size), initializer="glorot_uniform")
            setattr(self, f"_{name}", weight)
        if self.max_relative_position:
            table = (2 * self.max_relative_position + 1, self.head_size)
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
        bias = None if attention_mask is None else attention_bias(attention_mask, dtype)
        if memory is None:
            context = self.prepare_apart()._replace(bias=bias, pairs=None)
            if not self.max_relative_position:
                return context
            return self._at_distances(context, tf.range(length)[None, :] - tf.range(length)[:, None])
        q, k, v, output = self._kernels()
        # Turned once, which makes each product with few queries a third faster on CPUs.
        keys = tf.linalg.matrix_transpose(split_heads(project(memory, k), self.num_heads))
        values = split_heads(project(memory, v), self.num_heads)
        if memory_mask is not None:
            bias = attention_bias(memory_mask[:, None, :], dtype)
            values = values * tf.cast(memory_mask, dtype)[:, None, :, None]
        return AttentionContext(q, output, bias, keys, values)

    def prepare_apart(self):
        """Returns the context of self-attention as far as no position matters; `at` adds what one does."""
        q, k, v, output = self._kernels()
        return AttentionContext(tf.concat([q, k, v], axis=1), output, pairs=tf.concat([k, v], axis=1))

    def at(self, context, places):
        """Returns a context of `prepare_apart` at some `cache.Places`."""
        context = context._replace(bias=places.bias)
        if not self.max_relative_position:
            return context
        distance = tf.range(places.capacity)[None, :] - places.indices[:, None]
        each = places.hypotheses  # reads the keys of all slots; which of them are its own, the bias says
        return self._at_distances(context, tf.repeat(tf.repeat(distance, each, axis=1), each, axis=0))

    def attend(self, x, context, seed=None, view=None, active=None, watch=None):
        """Returns the attention [B, Q, D] of x [B, Q, D] under a prepared context.

        Args:
            x: [B, Q, D], or with `active` packed rows: all of them for self-attention, the active ones for a memory.
            context: what `prepare` returned.
            seed: [2] int32 for the dropout, or None.
            view: `cache.CacheView`, where keys and values of earlier positions are.
            active: `packing.Active`: only these rows ask, and only theirs come back.
            watch: a list that the attention weights [B, H, Q, K] are added to.
        """
        if active is not None and context.keys is None:
            keys, values = self._pairs(active.packed.unpack(project(x, context.pairs)))
            queries = project(active.chosen(x), context.queries[:, : x.shape[-1]])
        elif context.keys is None:
            queries, keys, values = tf.split(project(x, context.queries), 3, axis=-1)
            keys, values = split_heads(keys, self.num_heads), split_heads(values, self.num_heads)
        else:
            queries, keys, values = project(x, context.queries), context.keys, context.values
        if view is not None and context.keys is None:
            view.remember(keys, values)
            keys, values = view.known()
        queries = split_heads(queries if active is None else active.spread(queries), self.num_heads)
        logits = tf.matmul(queries, keys, transpose_b=context.keys is None)
        if context.relative_keys is not None:
            logits += tf.einsum("bhqe,qke->bhqk", queries, context.relative_keys)
        if context.bias is not None:
            logits += context.bias if active is None or context.keys is not None else active.bias(context.bias)
        weights = _softmax(tf.cast(logits, tf.float32))
        if self.hard_attention_k:
            weights = harden(weights, self.hard_attention_k)
        weights = tf.cast(weights, x.dtype)
        if watch is not None:
            watch.append(tf.cast(weights, tf.float32))
        weights = dropout(weights, self.dropout, seed)
        mixed = tf.matmul(weights, values)
        if context.relative_values is not None:
            mixed += tf.einsum("bhqk,qke->bhqe", weights, context.relative_values)
        mixed = _join_heads(mixed)
        return project(mixed if active is None else active.collect(mixed), context.output)

    def remember(self, x, context, view):
        """Writes keys and values of x [B, K*Q, D] into a cache, without asking anything."""
        view.remember(*self._pairs(project(x, context.pairs)))

    def _pairs(self, projected):
        return [split_heads(part, self.num_heads) for part in tf.split(projected, 2, axis=-1)]

    def _kernels(self):
        """Returns the kernels of queries (scaled), keys, values and output, of the compute type."""
        names = (self._q, self._k, self._v, self._output_transform)
        q, k, v, output = (tf.cast(tf.convert_to_tensor(w), self.compute_dtype) for w in names)
        return q * self.head_size**-0.5, k, v, output

    def _at_distances(self, context, distance):
        """distance: [Q, K] int32, key minus query."""
        limit = self.max_relative_position
        index = tf.clip_by_value(distance, -limit, limit) + limit
        tables = (tf.convert_to_tensor(w) for w in (self._relative_keys, self._relative_values))
        keys, values = (tf.cast(tf.gather(dense_gradient(table), index), self.compute_dtype) for table in tables)
        return context._replace(relative_keys=keys, relative_values=values)

    def call(self, x, memory=None, attention_mask=None, memory_mask=None, seed=None):
        return self.attend(x, self.prepare(tf.shape(x)[1], memory, attention_mask, memory_mask), seed)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "max_relative_position": self.max_relative_position,
            "hard_attention_k": self.hard_attention_k,
        }


def _softmax(logits):
    """logits: [B, H, Q, K] float32."""
    if logits.shape[2] != 1:
        return tf.nn.softmax(logits)
    # One query has so few keys that oneDNN's softmax takes four times as long to begin as this takes in all.
    shares = tf.exp(logits - tf.reduce_max(logits, axis=-1, keepdims=True))
    return shares / tf.reduce_sum(shares, axis=-1, keepdims=True)


def split_heads(x, num_heads):
    """Returns x [B, L, H*E] as [B, H, L, E]."""
    size = x.shape[-1] // num_heads
    if x.shape[1] == 1:
        return tf.reshape(x, [-1, num_heads, 1, size])
    return tf.transpose(tf.reshape(x, like(x, num_heads, size)), [0, 2, 1, 3])


def _join_heads(x):
    """[B, H, L, E] -> [B, L, H*E]."""
    heads, length, size = x.shape[1:]
    if length == 1:
        return tf.reshape(x, [-1, 1, heads * size])
    x = tf.transpose(x, [0, 2, 1, 3])
    shape = [-1, length] if length else tf.unstack(tf.shape(x)[:2])
    return tf.reshape(x, [*shape, heads * size])
