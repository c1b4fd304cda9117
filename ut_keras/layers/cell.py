"""What the recurrence types with a recurrent cell in place of the transition have in common.

Legend: B batch, L length, D hidden size.
"""

from ut_keras.layers.recurrence_type import RecurrenceType


class Cell(RecurrenceType):
    """Base of "gru", "lstm" and "rnn": a cell over depth; its input x is the normed output of the attention unit.

    Args:
        add_ffn_unit_to_the_transition_function: the blocks keep their transition, before the cell.
    """

    transition = False

    def __init__(self, add_ffn_unit_to_the_transition_function=False, **shared):
        super().__init__(**shared)
        self.transition = add_ffn_unit_to_the_transition_function
        self.norms = self.make_norms("input_norm", "output_norm")

    def all_gates(self):
        """Returns the cell's `Gates`, each of which reads two states."""
        return [self._gates]

    def build(self, shape):
        for norm in self.norms:
            norm.build(shape)
        for gates in self.all_gates():
            gates.build([shape, shape])
        self.built = True

    def prepare(self, steps):
        return [norm.prepare() for norm in self.norms], [gates.prepare() for gates in self.all_gates()]

    def normed(self, x, weights, which):
        """Returns the input (`which` 0) or the output (1) of the cell, normed where norms are before sub-layers."""
        return self.norms[which].normalize(x, weights[0][which]) if self.norms else x
