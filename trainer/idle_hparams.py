"""Which hyperparameters a run does not read. Standard library only: no TensorFlow."""

# Hyperparameter: the field that decides, and those of its values under which it is read.
_GATES = ("recurrence_type", ("highway", "skip"))
_DWA = ("recurrence_type", ("dwa",))
_READ_UNDER = {
    "gates_inputs": _GATES,
    "gate_ffn_layer": _GATES,
    "transform_bias_init": _GATES,
    "couple_carry_transform_gates": _GATES,
    "depth_embedding": _DWA,
    "dwa_elements": _DWA,
    "dwa_softmax": _DWA,
    "gru_mixes": ("recurrence_type", ("gru",)),
    "lstm_forget_bias": ("recurrence_type", ("lstm",)),
    "use_memory_as_final_state": ("recurrence_type", ("lstm",)),
    "add_ffn_unit_to_the_transition_function": ("recurrence_type", ("rnn", "gru", "lstm")),
    "num_mixedin_layers": ("mix_with_transformer", ("before_ut", "after_ut", "before_ut,after_ut")),
    "max_relative_position": ("self_attention_type", ("dot_product_relative", "dot_product_relative_v2")),
    "position_start_range": ("position_start_index", ("random",)),
    "position_step_length": ("position_start_index", ("step",)),
}
# Hyperparameter: the factor of the schedule that reads it.
_OF_FACTOR = {"learning_rate": "legacy", "learning_rate_constant": "constant"}


def idle_changes(hparams, changes):
    """Returns [(name, reason)] for those of the names `changes` that nothing reads beside the others' values.

    Example:

    >>> from ut_keras.hparams import HParams
    >>> idle_changes(HParams(), {"learning_rate": 0.1, "hidden_size": 512, "act_type": "frozen"})[1]
    ('act_type', 'recurrence_type=basic')
    """
    reasons = ((name, _reason(hparams, name)) for name in changes)
    return [(name, reason) for name, reason in reasons if reason]


def _reason(hparams, name):
    """Returns the setting under which `name` is not read, "field=value"; None where it is read."""
    acts = hparams.recurrence_type == "act"
    field = None
    if name == "num_rec_steps" if acts else name.startswith("act_"):
        field = "recurrence_type"
    elif name == "dropconnect_dropout" and hparams.gate_ffn_layer != "dense_dropconnect":
        field = "gate_ffn_layer"
    elif name == "dropconnect_dropout" and hparams.recurrence_type not in _GATES[1]:
        field = "recurrence_type"
    elif name in _READ_UNDER and getattr(hparams, _READ_UNDER[name][0]) not in _READ_UNDER[name][1]:
        field = _READ_UNDER[name][0]
    elif name in _OF_FACTOR and _OF_FACTOR[name] not in hparams.learning_rate_schedule.replace(" ", "").split("*"):
        field = "learning_rate_schedule"
    elif name.startswith("optimizer_") and not name.startswith((f"optimizer_{hparams.optimizer}_", "optimizer_multi")):
        field = "optimizer"
    return field and f"{field}={getattr(hparams, field)}"
