"""Rows without their padding, and of these the ones that still run: what need not be computed is not there.

Legend: B batch, L length, C channels, N real positions of the batch, A active ones, R most active ones of one row.
"""

import tensorflow as tf


class PackedRows:
    """The real positions of a batch, one after the other: [N, 1, C] for [B, L, C].

    N is rounded up, by less than an eighth, so that it takes few values: oneDNN compiles code for every shape that it
    meets and keeps it. The last position is there so many times more, and is the same each time.

    Args:
        mask: [B, L] bool, True at real positions.
        least: N, and the number of active rows, are multiples of this, from 16 of it on of 2 of it, from 32 on of 4.
    """

    def __init__(self, mask, least=8):
        self.real = mask
        self.least = least
        self.batch, self.length = tf.unstack(tf.shape(mask))
        # Where nothing is real one position stands in, so that there is something to gather from.
        first = tf.reshape(tf.range(self.batch * self.length), [self.batch, self.length]) == 0
        mask = mask | (first & ~tf.reduce_any(mask))
        self.mask = mask
        flat = tf.cast(tf.where(tf.reshape(mask, [-1]))[:, 0], tf.int32)
        self._flat = self.rounded(flat)
        self.count = tf.size(flat)
        self.places = tf.stack([self._flat // self.length, self._flat % self.length], axis=1)
        # Padding reads some real row: it is masked wherever it could be seen.
        before = tf.cumsum(tf.reshape(tf.cast(mask, tf.int32), [-1]), exclusive=True)
        self.inverse = tf.minimum(before, tf.maximum(tf.size(flat) - 1, 0))

    def rounded(self, indices):
        """Returns indices [N] int32 with the last of them repeated up to the next number that N may be."""
        count = tf.size(indices)
        doublings = tf.reduce_sum(tf.cast(count >= [16 * self.least << power for power in range(20)], tf.int32))
        multiple = tf.bitwise.left_shift(self.least, doublings)
        return tf.concat([indices, tf.repeat(indices[-1:], -count % multiple)], axis=0)

    def mask_of(self, mask):
        """Returns [N, 1] bool of a mask [B, L]; False where a position is there a second time."""
        return self.pack(mask[..., None])[..., 0] & (tf.range(tf.size(self._flat)) < self.count)[:, None]

    def pack(self, x):
        """Returns [N, 1, C] of x [B or 1, L, C]."""
        x = tf.broadcast_to(x, [self.batch, self.length, x.shape[-1]])
        return tf.gather(tf.reshape(x, [-1, x.shape[-1]]), self._flat)[:, None]

    def unpack(self, x):
        """Returns [B, L, C] of x [N, 1, C], with some real position's values at padding."""
        channels = tf.shape(x)[-1] if x.shape[-1] is None else x.shape[-1]
        return tf.reshape(tf.gather(x[:, 0], self.inverse), [self.batch, self.length, channels])

    def restore(self, x, padding):
        """Returns [B, L, C] of x [N, 1, C], with the number `padding` where there is padding."""
        return tf.where(self.real[..., None], self.unpack(x), tf.constant(padding, x.dtype))

    def active(self, running=None):
        """Returns the `Active` rows among them; `running` [N, 1] bool, None: all."""
        return Active(self, running)


class Active:
    """The packed rows that are refined in a step. As queries they stand row by row, [B, R, C], the rest of R unused.

    Args:
        packed: `PackedRows`.
        running: [N, 1] bool, or None: all.
    """

    def __init__(self, packed, running):
        self.packed = packed
        self._all = running is None
        mask = packed.mask
        if not self._all:
            mask = mask & packed.unpack(running[..., None])[..., 0]
            self._indices = tf.boolean_mask(packed.inverse, tf.reshape(mask, [-1]))
            self._chosen = packed.rounded(self._indices)
        counts = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
        self._width = tf.reduce_max(tf.concat([counts, [0]], 0))
        taken = tf.range(self._width) < counts[:, None]
        slots = tf.cumsum(counts, exclusive=True)[:, None] + tf.range(self._width)
        self._slots = tf.minimum(slots, tf.maximum(tf.reduce_sum(counts) - 1, 0))
        self._back = packed.rounded(tf.cast(tf.where(tf.reshape(taken, [-1]))[:, 0], tf.int32))

    def chosen(self, x):
        """Returns [A, 1, C] of packed rows x [N, 1, C]."""
        return x if self._all else tf.gather(x, self._chosen)

    def merge(self, x, new):
        """Returns packed rows x [N, 1, C] with new [A, 1, C] in place of the active ones."""
        if self._all:
            return new
        # Once each: written more often, a row would have its gradient as many times.
        return tf.tensor_scatter_nd_update(x, self._indices[:, None], new[: tf.size(self._indices)])

    def spread(self, x):
        """Returns [B, R, C] of active rows x [A, 1, C]."""
        return tf.reshape(tf.gather(x[:, 0], self._slots), [self.packed.batch, self._width, x.shape[-1]])

    def collect(self, x):
        """Returns the active rows [A, 1, C] of x [B, R, C]."""
        return tf.gather(tf.reshape(x, [-1, x.shape[-1]]), self._back)[:, None]

    def bias(self, bias):
        """Returns the attention bias of the queries, [B, 1, 1 or R, L], of one for all positions.

        Args:
            bias: [B, 1, 1, L], which all queries share, or [1, 1, L, L], causal.
        """
        if bias.shape[2] == 1:
            return bias
        places = tf.gather(self.chosen(self.packed.places[:, 1]), self._slots)
        return tf.gather(bias[0, 0], places)[:, None]
