"""Which hyperparameters a run does not read. Standard library only: no TensorFlow."""

# Hyperparameter: the fields that decide, and those of their values under which it is read.
_GATES = {"recurrence_type": ("highway", "skip")}
_DWA = {"recurrence_type": ("dwa",)}
_LSTM = {"recurrence_type": ("lstm",)}
_ACT = {"recurrence_type": ("act",)}
_PLACED = {"add_position_timing_signal": (True,)}
_READ_UNDER = {
    "gates_inputs": _GATES,
    "gate_ffn_layer": _GATES,
    "dropconnect_dropout": {"gate_ffn_layer": ("dense_dropconnect",), **_GATES},
    "transform_bias_init": _GATES,
    "couple_carry_transform_gates": _GATES,
    "depth_embedding": _DWA,
    "dwa_elements": _DWA,
    "dwa_softmax": _DWA,
    "gru_mixes": {"recurrence_type": ("gru",)},
    "lstm_forget_bias": _LSTM,
    "use_memory_as_final_state": _LSTM,
    "add_ffn_unit_to_the_transition_function": {"recurrence_type": ("rnn", "gru", "lstm")},
    "act_halting_bias_init": {**_ACT, "act_type": ("basic", "accumulated", "global", "frozen")},
    "act_remainder_at_limit": {**_ACT, "act_type": ("accumulated", "frozen")},
    "global_over": {**_ACT, "act_type": ("global",)},
    "num_mixedin_layers": {"mix_with_transformer": ("before_ut", "after_ut", "before_ut,after_ut")},
    "max_relative_position": {"self_attention_type": ("dot_product_relative", "dot_product_relative_v2")},
    "position_start_index": _PLACED,
    "position_start_range": {"position_start_index": ("random",), **_PLACED},
    "position_step_length": {"position_start_index": ("step",), **_PLACED},
    "input_position_numbering": _PLACED,
    "step_timing_signal_type": {"add_step_timing_signal": (True,)},
    "target_space_id": {"use_target_space_embedding": (True,)},
}
# Hyperparameters of the transition, which a recurrent cell puts itself in the place of.
_OF_TRANSITION = ("filter_size", "transformer_ffn_type", "relu_dropout")
# Hyperparameter: the factor of the schedule that reads it.
_OF_FACTOR = {
    "learning_rate": "legacy",
    "learning_rate_constant": "constant",
    "learning_rate_decay_rate": "exp_decay",
    "learning_rate_decay_staircase": "exp_decay",
}


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
    elif name in _READ_UNDER:
        field = next((one for one, read in _READ_UNDER[name].items() if getattr(hparams, one) not in read), None)
    elif name in _OF_TRANSITION and _without_transition(hparams):
        field = "recurrence_type"
    elif name in _OF_FACTOR and _OF_FACTOR[name] not in hparams.learning_rate_schedule.replace(" ", "").split("*"):
        field = "learning_rate_schedule"
    elif name.startswith("optimizer_") and not name.startswith((f"optimizer_{hparams.optimizer}_", "optimizer_multi")):
        field = "optimizer"
    return field and f"{field}={getattr(hparams, field)}"


def _without_transition(hparams):
    """Returns whether no block has a transition."""
    cell = hparams.recurrence_type in ("rnn", "gru", "lstm")
    return cell and not hparams.add_ffn_unit_to_the_transition_function and not hparams.mix_with_transformer
