"""Recurrence type "rnn": a plain recurrent cell over depth.

Legend: B batch, L length, D hidden size.
"""

import tensorflow as tf

from ut_keras.layers.cell import Cell
from ut_keras.layers.gate import Gates, masked


class Rnn(Cell):
    """New state norm(tanh(dense[x, s])), s the old state. T2T names this type but does not have it."""

    def __init__(self, **options):
        super().__init__(**options)
        self._gates = Gates({"state": 0.0}, name="gates", dtype=self.dtype_policy)

    def step(self, carry, new, step, weights, constants, real=None, seed=None):
        x = self.normed(new, weights, 0)
        state = self._gates.apply([x, carry], weights[1][0])[0]
        return self.normed(masked(tf.tanh(state), real), weights, 1)
