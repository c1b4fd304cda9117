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
    recurrent = hparams.model.startswith("universal")
    steps = hparams.num_hidden_layers
    if recurrent:
        steps = hparams.act_max_steps if hparams.recurrence_type == "act" else hparams.num_rec_steps
        steps *= hparams.num_inrecurrence_layers
    total = 0
    if features.input_vocabulary_size:
        total += steps * source_length * _block_flops(hparams, source_length)
    if features.target == "class":
        return total + 2 * size * classes
    cross = 0
    if features.input_vocabulary_size:
        cross = 4 * size * size + 4 * size * source_length
        # A recurrence projects the memory's keys and values once; different blocks each project their own.
        projections = hparams.num_inrecurrence_layers if recurrent else steps
        total += projections * 4 * size * size * source_length
    total += steps * target_length * (_block_flops(hparams, target_length) + cross)
    return total + 2 * size * classes * target_length


def _block_flops(hparams, length):
    """Self-attention over `length` keys and the transition, for one position and one step."""
    size, inner = hparams.hidden_size, hparams.filter_size
    convolutions = 2 * (3 * size + 5 * inner) if hparams.transformer_ffn_type == "sepconv" else 0
    return 8 * size * size + 4 * size * length + 4 * size * inner + convolutions


def _lstm_flops(hparams, classes, source_length, target_length):
    size = hparams.hidden_size
    cells = 16 * size * size * hparams.num_hidden_layers * (source_length + target_length)
    attention = 0
    if hparams.model.endswith("attention"):
        attention = target_length * (4 * size * size + 4 * size * source_length)
    return cells + attention + 2 * size * classes * target_length
