"""Recurrence type "gru": a gated recurrent unit over depth.

Legend: B batch, L length, D hidden size.
"""

import tensorflow as tf

from ut_keras.layers.cell import Cell
from ut_keras.layers.choices import one_of
from ut_keras.layers.gate import Gates, masked, squashed


class Gru(Cell):
    """New state norm((1 - z) s + z c), c = tanh(dense[x, r s]), z and r = sigmoid(dense[x, s]), s the old state.

    Args:
        gru_mixes: "state"; or "input", T2T's form, which has x in the place of s in the sum, so that the old state
            reaches the new one through gates and candidate alone.

    Source: Cho et al. 2014; T2T universal_transformer_util.py (universal_transformer_with_gru_as_transition_function).
    """

    def __init__(self, gru_mixes="state", **options):
        super().__init__(**options)
        self.gru_mixes = one_of("gru_mixes", gru_mixes, ("state", "input"))
        self._gates = Gates({"update": 1.0, "reset": 1.0}, name="gates", dtype=self.dtype_policy)
        self._candidate = Gates({"candidate": 0.0}, name="candidate", dtype=self.dtype_policy)

    def all_gates(self):
        return [self._gates, self._candidate]

    def step(self, carry, new, step, weights, constants, real=None, seed=None):
        gate_weights, candidate_weights = weights[1]
        x = self.normed(new, weights, 0)
        update, reset = (squashed(gate, real) for gate in self._gates.apply([x, carry], gate_weights))
        candidate = self._candidate.apply([x, reset * carry], candidate_weights)[0]
        candidate = masked(tf.tanh(candidate), real)
        before = carry if self.gru_mixes == "state" else x
        return self.normed((1.0 - update) * before + update * candidate, weights, 1)
