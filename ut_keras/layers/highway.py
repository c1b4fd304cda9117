"""Recurrence types "highway" and "skip": gates between the blocks' output and what is carried past them.

Legend: B batch, L length, D hidden size.
"""

from ut_keras.layers.choices import each_once
from ut_keras.layers.gate import Gates, squashed
from ut_keras.layers.recurrence_type import RecurrenceType

_LETTERS = "sti"  # T2T puts its inputs side by side in this order


class Highway(RecurrenceType):
    """The new state is state * carry + blocks' output * transform, with gates of [B, L, D] in (0, 1).

    transform = sigmoid(dense(norm(inputs of the gates))), carry = 1 - transform, or a gate of its own. Gates that read
    the original inputs alone are the same at every step and are computed once.

    Args:
        gates_inputs: what the gates read, one or more letters: "i" the recurrence's inputs, "s" the state before the
            step's signals, "t" the blocks' output; each is normed by itself (pre-norm).
        gate_ffn_layer, dropconnect_dropout: kind and rate of `Gates`.
        transform_bias_init: initial bias of the transform gate; an own carry gate begins with its negative.
        couple_carry_transform_gates: carry = 1 - transform.

    Source: Srivastava et al. 2015; T2T universal_transformer_util.py (universal_transformer_highway). T2T's last
    commit reads `gates_inputs` but no longer sets it, so that neither type can be built there.
    """

    def __init__(
        self,
        gates_inputs="i",
        gate_ffn_layer="dense",
        dropconnect_dropout=0.0,
        transform_bias_init=-1.0,
        couple_carry_transform_gates=True,
        **shared,
    ):
        super().__init__(**shared)
        if not each_once(gates_inputs, _LETTERS):
            raise ValueError(f"gates_inputs={gates_inputs!r} is not one or more of the letters i, s and t, each once")
        self._letters = [letter for letter in _LETTERS if letter in gates_inputs]
        self.norms = self.make_norms(*(f"norm_{letter}" for letter in self._letters))
        biases = {"transform": transform_bias_init}
        if not couple_carry_transform_gates:
            biases["carry"] = -transform_bias_init
        self.gates = Gates(
            biases,
            gate_ffn_layer,
            dropconnect_dropout,
            self.filter_size,
            self.relu_dropout,
            name="gates",
            dtype=self.dtype_policy,
        )

    def build(self, shape):
        for norm in self.norms:
            norm.build(shape)
        self.gates.build([shape] * len(self._letters))
        self.built = True

    def all_gates(self):
        return [self.gates]

    def prepare(self, steps):
        return [norm.prepare() for norm in self.norms], self.gates.prepare()

    def begin(self, x, weights, real=None, seed=None):
        constants = {"inputs": x}
        if self._letters == ["i"]:
            constants["gates"] = self._gates({"i": x}, weights, real, seed)
        return x, constants

    def step(self, carry, new, step, weights, constants, real=None, seed=None):
        gates = constants.get("gates")
        if gates is None:
            gates = self._gates({"s": carry, "t": new, "i": constants["inputs"]}, weights, real, seed)
        transform, kept = gates
        return self.carried(carry, constants["inputs"]) * kept + new * transform

    def carried(self, state, inputs):
        """Returns what the carry gate multiplies."""
        return state

    def _gates(self, values, weights, real, seed):
        norm_weights, gate_weights = weights
        values = [values[letter] for letter in self._letters]
        for index, (norm, prepared) in enumerate(zip(self.norms, norm_weights, strict=True)):
            values[index] = norm.normalize(values[index], prepared)
        transform, *own = [squashed(gate, real) for gate in self.gates.apply(values, gate_weights, seed)]
        return [transform, *(own or [1.0 - transform])]


class Skip(Highway):
    """As `Highway`, but the carry gate multiplies the recurrence's original inputs (T2T universal_transformer_skip)."""

    def carried(self, state, inputs):
        return inputs
