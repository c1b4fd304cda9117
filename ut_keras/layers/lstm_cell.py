"""Recurrence type "lstm": a long short-term memory over depth.

Legend: B batch, L length, D hidden size.
"""

import tensorflow as tf

from ut_keras.layers.cell import Cell
from ut_keras.layers.gate import Gates, masked, squashed


class Lstm(Cell):
    """New state norm(tanh(m) o), memory m = f m + i tanh(dense[x, s]), each gate sigmoid(dense[x, s]); m begins at 0.

    Args:
        lstm_forget_bias: added to the forget gate f before its sigmoid.
        use_memory_as_final_state: the recurrence gives its last memory instead of its last state.

    Source: Hochreiter and Schmidhuber 1997; T2T universal_transformer_util.py
    (universal_transformer_with_lstm_as_transition_function).
    """

    def __init__(self, lstm_forget_bias=1.0, use_memory_as_final_state=False, **options):
        super().__init__(**options)
        self.lstm_forget_bias = lstm_forget_bias
        self.use_memory_as_final_state = use_memory_as_final_state
        biases = dict.fromkeys(("input", "forget", "output", "input_modulation"), 0.0)
        self._gates = Gates(biases, name="gates", dtype=self.dtype_policy)

    def begin(self, x, weights, real=None, seed=None):
        return {"state": x, "memory": tf.zeros_like(x)}, []

    def step(self, carry, new, step, weights, constants, real=None, seed=None):
        x = self.normed(new, weights, 0)
        entering, forget, leaving, change = self._gates.apply([x, carry["state"]], weights[1][0])
        # T2T removes padding inside of the dense layer, before this bias.
        forget = tf.sigmoid(masked(forget, real) + self.lstm_forget_bias)
        memory = carry["memory"] * forget + squashed(entering, real) * masked(tf.tanh(change), real)
        return {"state": self.normed(tf.tanh(memory) * squashed(leaving, real), weights, 1), "memory": memory}

    def output(self, carry):
        return carry["state"]

    def result(self, carry):
        return carry["memory" if self.use_memory_as_final_state else "state"]
