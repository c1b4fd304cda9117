"""Floating-point operations of a forward pass, counted from the hyperparameters. Standard library only.

A multiplication and its addition are two operations. Matrix products only: norms, softmax and signals are left
out. With halting it is the most there can be: every position runs to the step limit. A training step costs
about three times as much (four with rematerialisation).

Legend: D hidden size, F filter size, V vocabulary size, L source length, M target length, T steps.
"""


def forward_flops(hparams, features, source_length, target_length):
    """Returns the operations for one example.

    Args:
        hparams: `HParams`.
        features: `Features` of the problem.
        source_length: L, positions of the inputs (sentences, where inputs are sentences); 0 without inputs.
        target_length: M, positions of the targets, end token included; a class has one.
    """
    size, classes = hparams.hidden_size, features.target_vocabulary_size
    if hparams.model.startswith("lstm"):
        return _lstm_flops(hparams, classes, source_length, target_length)
    # How often a position goes through a block, and through how many different ones.
    applied = blocks = hparams.num_hidden_layers
    transitions = applied
    if hparams.model.startswith("universal"):
        mixed = hparams.num_mixedin_layers * (hparams.mix_with_transformer or "").count("_ut")
        blocks = hparams.num_inrecurrence_layers + mixed
        applied = _steps(hparams) * hparams.num_inrecurrence_layers + mixed
        cell_alone = hparams.recurrence_type in _CELLS and not hparams.add_ffn_unit_to_the_transition_function
        transitions = mixed if cell_alone else applied
    positions = target_length if features.target != "class" else 0
    total = _type_flops(hparams, (source_length if features.input_vocabulary_size else 0) + positions)
    if features.input_vocabulary_size:
        total += source_length * (applied * _attention_flops(size, source_length) + transitions * _ffn_flops(hparams))
    if features.target == "class":
        return total + 2 * size * classes
    cross = 0
    if features.input_vocabulary_size:
        cross = 4 * size * size + 4 * size * source_length
        # A recurrence projects the memory's keys and values once; different blocks each project their own.
        total += blocks * 4 * size * size * source_length
    each = applied * (_attention_flops(size, target_length) + cross) + transitions * _ffn_flops(hparams)
    total += target_length * each
    return total + 2 * size * classes * target_length


def _steps(hparams):
    return hparams.act_max_steps if hparams.recurrence_type == "act" else hparams.num_rec_steps


def _attention_flops(size, length):
    """Self-attention over `length` keys, for one position and one step."""
    return 8 * size * size + 4 * size * length


def _ffn_flops(hparams):
    """The transition, for one position and one step."""
    size, inner = hparams.hidden_size, hparams.filter_size
    convolutions = 2 * (3 * size + 5 * inner) if hparams.transformer_ffn_type == "sepconv" else 0
    return 4 * size * inner + convolutions


# Dense layers from two states to one, at every step.
_CELLS = {"rnn": 1, "gru": 3, "lstm": 4}


def _type_flops(hparams, positions):
    """The dense layers of the recurrence type and of the simple recurrent units, for so many positions."""
    if not hparams.model.startswith("universal"):
        return 0
    kind, size = hparams.recurrence_type, hparams.hidden_size
    each = 12 * size * size if hparams.add_sru else 0
    once = 0
    if kind in _CELLS:
        each += _CELLS[kind] * 4 * size * size
    elif kind == "dwa":
        units = size if hparams.dwa_elements else 1
        each, once = each + 2 * size * units, 2 * size * units
    elif kind in ("highway", "skip"):
        gates = 1 if hparams.couple_carry_transform_gates else 2
        rows = len(hparams.gates_inputs) * size
        two_layers = hparams.gate_ffn_layer == "dense_relu_dense"
        gate = 2 * hparams.filter_size * (rows + size) if two_layers else 2 * rows * size
        if hparams.gates_inputs == "i":
            once = gates * gate
        else:
            each += gates * gate
    return positions * (_steps(hparams) * each + once)


def _lstm_flops(hparams, classes, source_length, target_length):
    size = hparams.hidden_size
    cells = 16 * size * size * hparams.num_hidden_layers * (source_length + target_length)
    attention = 0
    if hparams.model.endswith("attention"):
        attention = target_length * (4 * size * size + 4 * size * source_length)
    return cells + attention + 2 * size * classes * target_length
