"""A decoder that looks its logits up in a table, and what every search has to agree with: all sequences, enumerated.

Legend: B rows, K hypotheses of a row, N positions, V vocabulary size.
"""

import itertools
import math

import numpy as np
import tensorflow as tf

from ut_keras.decoding.decoder import Decoder


class TableDecoder(Decoder):
    """The logits at position i are table[b, i, j]: j is the last id (0 at the beginning), or the sum of all ids mod V.

    The ponder time of a position is 1 + j. Where it runs eagerly it notes what it is asked for: `prefixes`, `rows` (the
    batch at each step), `capacities`.

    Args:
        table: [B, N, V, V]; behind position N - 1 its last entry repeats.
        sums: j is the sum of the ids so far, so that each hypothesis has to be told from the others.
    """

    def __init__(self, table, sums=False):
        self.table = tf.cast(table, tf.float32)
        self.sums = sums
        self.prefixes, self.rows, self.capacities = [], [], []

    def start(self, prefix, beams, capacity):
        self._note(self.prefixes, prefix)
        self._note(self.capacities, capacity)
        before = tf.concat([tf.zeros_like(prefix[:, :1]), prefix], axis=1)
        entries = (tf.cumsum(before, axis=1) if self.sums else before) % self.table.shape[-1]
        # The last id of the prefix comes with the first step.
        state = {"sum": tf.repeat(tf.reduce_sum(prefix[:, :-1], axis=1)[:, None], beams, axis=1), "table": self.table}
        return state, tf.cast(1 + entries[:, : tf.shape(prefix)[1]], tf.float32)

    def step(self, state, ids, position):
        total = state["sum"] + ids
        entries = (total if self.sums else ids) % self.table.shape[-1]
        table = state["table"][:, tf.minimum(position, self.table.shape[1] - 1)]
        self._note(self.rows, tf.shape(ids)[0])
        return tf.gather(table, entries, batch_dims=1), tf.cast(1 + entries, tf.float32), {**state, "sum": total}

    def reorder(self, state, parents):
        return {**state, "sum": tf.gather(state["sum"], parents, batch_dims=1)}

    def select(self, state, rows):
        return {name: tf.gather(value, rows) for name, value in state.items()}

    def grow(self, state, capacity):
        self._note(self.capacities, capacity)
        return state

    def invariants(self, state):
        return {name: tf.TensorShape([None, *value.shape[1:]]) for name, value in state.items()}

    def _note(self, where, value):
        if tf.executing_eagerly():
            where.append(np.asarray(value).tolist())


def log_probability(table, ids, sums=False, given=0):
    """The log-probability of a sequence of ids under one row of a table [N, V, V], of those from place `given` on."""
    total, before, result = 0, 0, 0.0
    for position, following in enumerate(ids):
        total += before
        logits = table[min(position, len(table) - 1), (total if sums else before) % table.shape[-1]].astype(float)
        if position >= given:
            result += logits[following] - logits.max() - math.log(np.exp(logits - logits.max()).sum())
        before = following
    return result


def penalty(length, alpha):
    """((5 + length) / 6)^alpha."""
    return ((5 + length) / 6) ** alpha


def every_hypothesis(table, limit, alpha=0.0, sums=False):
    """All sequences of one row that end within `limit` ids, and all that are cut there: [(ids, score)], best first.

    Padding (id 0) is in none of them.
    """
    size = table.shape[-1]
    ended, cut = [], []
    for length in range(1, limit + 1):
        for front in itertools.product(range(2, size), repeat=length - 1):
            ended.append((*front, 1))
    cut = list(itertools.product(range(2, size), repeat=limit))
    return [
        sorted(
            ((ids, log_probability(table, ids, sums) / penalty(len(ids), alpha)) for ids in group),
            key=lambda pair: -pair[1],
        )
        for group in (ended, cut)
    ]


def numpy_beam(table, limit, beam_size, alpha, sums=False):
    """Beam search of one row without any early stop, written plainly: [(ids, score)] of ended, of cut ones."""
    alive, ended = [((), 0.0)], []
    for length in range(1, limit + 1):
        grown = []
        for ids, total in alive:
            for following in range(1, table.shape[-1]):
                whole = (*ids, following)
                grown.append((whole, total + log_probability(table, whole, sums, given=length - 1)))
        grown = sorted(grown, key=lambda pair: -pair[1])[: 2 * beam_size]
        ended += [(ids, total / penalty(length, alpha)) for ids, total in grown if ids[-1] == 1]
        ended = sorted(ended, key=lambda pair: -pair[1])[:beam_size]
        alive = [pair for pair in grown if pair[0][-1] != 1][:beam_size]
    return ended, [(ids, total / penalty(limit, alpha)) for ids, total in alive]
