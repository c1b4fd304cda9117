"""The decoding cache: what each step knows of the positions before, one entry per block and step.

Legend: B batch, K hypotheses of a row, Q positions computed now (one when K > 1), N capacity, H heads, E head size,
C channels, S entries (steps times blocks of a step).

Keys and values of an entry are one piece of memory in which attention reads them as [B, H, N*K, E] without a
transposition, and a write touches the new position alone: [S*B*H, N, K*E].
"""

from typing import Any, NamedTuple

import tensorflow as tf

from ut_keras.layers.inplace import put, put_entry
from ut_keras.layers.masks import attention_bias


class CacheLayout(NamedTuple):
    """What of a cache never changes: S, H and E, Python ints."""

    entries: int
    heads: int
    size: int


class Places(NamedTuple):
    """Which positions a pass computes, what each may read, and where their keys and values go.

    Attributes:
        position: scalar int32, the first of them.
        indices: [Q] int32, the positions, counted from 0.
        hypotheses: K, Python int.
        bias: [B or 1, 1, K*Q, N*K], added to the logits of self-attention.
        capacity: N, scalar int32.
        rows: B*H, scalar int32.
        written: [3] int32, the shape of what is written, [B*H, Q, K*E].
        read: [4] int32, the shape that attention reads, [B, H, N*K, E].
        ancestry: [B, K, N] int32, with the new position; None for one hypothesis.
    """

    position: Any
    indices: Any
    hypotheses: int
    bias: Any
    capacity: Any
    rows: Any
    written: Any
    read: Any
    ancestry: Any


def places_of(position, count, batch, tensors, layout, hypotheses, ancestry=None):
    """Returns the `Places` of a pass.

    Args:
        position: scalar int32, the first position to compute.
        count: scalar int32, Q.
        batch: scalar int32, B.
        tensors: the cache's.
        layout: `CacheLayout`.
        hypotheses: K, Python int.
        ancestry: [B, K, N] int32, the slot that holds what hypothesis k knows of each earlier position, for a beam;
            None: one hypothesis, which knows all earlier positions.
    """
    capacity, dtype = tf.shape(tensors["keys"])[1], tensors["keys"].dtype
    indices = position + tf.range(count)
    slots = tf.range(capacity)
    if ancestry is None:
        visible = slots[None, None, :] <= indices[None, :, None]
    else:
        own = tf.range(hypotheses)
        # At the position itself each hypothesis reads what it writes now.
        ancestry = tf.where(slots == position, own[None, :, None], ancestry)
        known = (ancestry[..., None] == own) & (slots <= position)[:, None]
        visible = tf.reshape(known, [batch, hypotheses, capacity * hypotheses])
    rows = batch * layout.heads
    written = tf.stack([rows, count, hypotheses * layout.size])
    read = tf.stack([batch, layout.heads, capacity * hypotheses, layout.size])
    bias = attention_bias(visible, dtype)
    return Places(position, indices, hypotheses, bias, capacity, rows, written, read, ancestry)


class CacheView:
    """One entry of a cache while a block is traced; what was written is in `tensors` afterwards.

    Args:
        tensors: {name: tensor}; changed in place, as a dictionary.
        entry: scalar int32, the entry to read and write.
        places: `Places`.
    """

    def __init__(self, tensors, entry, places):
        self.tensors = tensors
        self.entry = entry
        self.places = places

    def remember(self, keys, values):
        """Writes keys and values [B, H, K*Q, E] of the positions computed now."""
        places = self.places
        begin = tf.stack([self.entry * places.rows, places.position, 0])
        end = begin + places.written
        for name, new in (("keys", keys), ("values", values)):
            self.tensors[name] = put(self.tensors[name], tf.reshape(new, places.written), begin, end)

    def known(self):
        """Returns all keys and values, each [B, H, N*K, E]."""
        begin = tf.stack([self.entry * self.places.rows, 0, 0])
        size = tf.stack([self.places.rows, -1, -1])
        return [tf.reshape(tf.slice(self.tensors[name], begin, size), self.places.read) for name in ("keys", "values")]

    def latest(self, name):
        """Returns what is kept of the latest positions, [B, K, ...]."""
        return self.tensors[name][self.entry]

    def keep(self, name, value):
        """Replaces what is kept of the latest positions by `value` [B, K, ...]."""
        self.tensors[name] = put_entry(self.tensors[name], value, self.entry)

    def with_recent(self, name, x):
        """Returns x [B, K*Q, C] behind the inputs before it, [B*K, width - 1 + Q, C], and keeps the last of them."""
        before = self.latest(name)
        shape, width, channels = tf.shape(x), before.shape[2], x.shape[-1]
        hypotheses = self.places.hypotheses
        x = tf.reshape(x, [shape[0] * hypotheses, shape[1] // hypotheses, channels])
        whole = tf.concat([tf.reshape(before, [-1, width, channels]), x], axis=1)
        self.keep(name, tf.reshape(whole[:, -width:], [shape[0], hypotheses, width, channels]))
        return whole

    def running_sums(self, name, values):
        """Returns the sums of values [B, K*Q] over the positions up to each, those before this pass included."""
        shape, hypotheses = tf.shape(values), self.places.hypotheses
        rows = tf.reshape(values, [shape[0], hypotheses, shape[1] // hypotheses])
        before = self.latest(name)[..., None]
        sums = tf.cumsum(rows, axis=2) + before
        self.keep(name, tf.concat([before, sums], axis=2)[..., -1])
        return tf.reshape(sums, shape)


# Kept for every position; of all else the latest positions alone, [S, B, K, ...].
_POSITIONAL = ("keys", "values")


def select_rows(tensors, rows, layout):
    """Returns a cache of the rows [b] int32 of another's batch."""
    chosen = {}
    for name, tensor in tensors.items():
        if name not in _POSITIONAL:
            chosen[name] = tf.gather(tensor, rows, axis=1)
            continue
        shape = tf.shape(tensor)
        split = tf.reshape(tensor, [layout.entries, -1, layout.heads * shape[1] * shape[2]])
        taken = tf.reshape(tf.gather(split, rows, axis=1), [-1, shape[1], shape[2]])
        chosen[name] = tf.ensure_shape(taken, [None, None, tensor.shape[2]])
    return chosen


def reorder(tensors, parents):
    """Returns a cache in which hypothesis k goes on from parents[b, k]; parents: [B, K] int32.

    Keys and values stay where they are, since ancestry says who may read them; what is kept of the latest
    positions alone is moved.
    """
    return {
        name: tensor if name in _POSITIONAL else _gather_hypotheses(tensor, parents) for name, tensor in tensors.items()
    }


def _gather_hypotheses(tensor, parents):
    """tensor [S, B, K, ...] -> [S, B, K, ...] with hypotheses parents [B, K] in each entry."""
    shape = tf.shape(tensor)
    flat = tf.reshape(tensor, tf.concat([[shape[0], shape[1] * shape[2]], shape[3:]], 0))
    rows = tf.range(shape[1])[:, None] * shape[2] + parents
    return tf.ensure_shape(tf.reshape(tf.gather(flat, tf.reshape(rows, [-1]), axis=1), shape), tensor.shape)


def widen(tensors, hypotheses, capacity, layout):
    """Returns a cache of so many hypotheses (Python int, of one or as before) with room for so many positions."""
    wide = {}
    for name, tensor in tensors.items():
        if name in _POSITIONAL:
            width = hypotheses * layout.size
            tensor = tf.pad(tensor, [[0, 0], [0, capacity - tf.shape(tensor)[1]], [0, width - tensor.shape[2]]])
            wide[name] = tf.ensure_shape(tensor, [None, None, width])
        else:
            wide[name] = tf.repeat(tensor, hypotheses // tensor.shape[2], axis=2)
    return wide


def invariants(tensors):
    """Returns the shapes of a cache whose rows and capacity may change."""
    shapes = {}
    for name, tensor in tensors.items():
        changing = (0, 1) if name in _POSITIONAL else (1,)
        shapes[name] = tf.TensorShape([None if axis in changing else size for axis, size in enumerate(tensor.shape)])
    return shapes
