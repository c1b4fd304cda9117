"""tensor2tensor's hyperparameters -> ours. Standard library only.

Formulas are T2T's where they differ from our defaults: padding halts and counts, no remainder at the step limit, start
index "step" over the padded length, `global` halting over the whole sequence, dwa's softmax over channels, gru's mix.
So are signals, whatever the set says: sinusoids in halves, inputs numbered from their start.
"""

from ut_keras.errors import UsageError, UserError
from ut_keras.hparams import HParams

MODELS = {
    "ut": "universal_transformer",
    "ut_enc": "universal_transformer_encoder",
    "transformer": "transformer",
}
# T2T's options that change what is computed, and their values that we compute.
_COMPUTED = {
    "recurrence_type": ("basic", "act", "highway", "skip", "dwa", "gru", "lstm"),
    "self_attention_type": ("dot_product", "dot_product_relative"),
    "pos": (None, "timing"),
    "ffn_layer": ("dense_relu_dense",),
    "norm_type": ("layer",),
    "proximity_bias": (False,),
    "gumbel_noise_weight": (0,),
    "causal_decoder_self_attention": (True,),
    "unidirectional_encoder": (False,),
    "attention_key_channels": (0,),
    "attention_value_channels": (0,),
    "attention_variables_3d": (False,),
    "heads_share_relative_embedding": (False,),
    "num_encoder_layers": (0,),
    "num_decoder_layers": (0,),
    "num_area_layers": (0,),
    "nbr_decoder_problems": (1,),
    "prepend_mode": ("none",),
    "vocab_divisor": (1,),
    "weight_dtype": ("float32",),
}


def hparams_from_t2t(config):
    """Returns our `HParams` for the configuration of a T2T model, dropout off.

    Args:
        config: {"model": "ut", "ut_enc" or "transformer", "d": hidden size, "filter", "heads", "effective": T2T's
            resolved hyperparameters, "hp": those that win over them, "use_target_space_embedding",
            "target_space_id"}.

    Raises:
        UserError: an option that we do not have.
    """
    values = {
        **config.get("effective", {}),
        **config.get("hp", {}),
        "hidden_size": config["d"],
        "filter_size": config["filter"],
        "num_heads": config["heads"],
        "use_target_space_embedding": config.get("use_target_space_embedding", False),
        "target_space_id": config.get("target_space_id", 0),
    }
    off = dict.fromkeys(("layer_prepostprocess_dropout", "attention_dropout", "relu_dropout"), 0.0)
    base = HParams(model=MODELS.get(config["model"], config["model"]))
    return from_tensor2tensor({**values, **off}, base)[0]


def from_tensor2tensor(values, base, changes=None):
    """Returns (`HParams`, names of T2T's that have no counterpart here), for T2T's hyperparameters.

    Args:
        values: {name: value} of T2T's, its hparams.json for one.
        base: `HParams` of the model, for what is in neither.
        changes: {name: value} of ours, which win; values of the same names are not looked at.

    Raises:
        UserError: an option that we do not compute; the message names it, its value, and those that we have.
    """
    changes = changes or {}
    values = {name: value for name, value in values.items() if name not in changes}
    for name, computed in _COMPUTED.items():
        if name in values and values[name] not in computed:
            ours = ", ".join(repr(value) for value in computed)
            raise UserError(f"{name}={values[name]!r} of tensor2tensor is not supported; supported: {ours}")
    fields = HParams.__dataclass_fields__
    known, unused = {}, []
    for name, value in {**values, **_translated(values, base)}.items():
        if name not in fields:
            unused += [] if name in _COMPUTED else [name]
        elif not fields[name].metadata["models"] or base.model in fields[name].metadata["models"]:
            known[name] = bool(value) if fields[name].type is bool and value in (0, 1) else value
    try:
        hparams = base.override(known)
        hparams = hparams.override({**_parity(hparams), "timing_layout": "t2t", "input_position_numbering": "start"})
    except UsageError as error:
        raise UserError(f"of tensor2tensor: {error}; --hparams=NAME=VALUE puts another value in its place") from None
    return hparams.override(changes), sorted(unused)


def _translated(values, base):
    """Returns those of T2T's values that are called or written otherwise here; {} where there are no values."""
    if not values:
        return {}
    ours = {}
    positions = values.get("add_position_timing_signal", True)
    if base.model == "transformer" and "pos" in values:
        ours["add_position_timing_signal"] = values["pos"] == "timing"
    elif not positions and values.get("pos"):
        raise UserError("pos='timing' of tensor2tensor is not supported with add_position_timing_signal=False")
    if values.get("shared_embedding") and not values.get("shared_embedding_and_softmax_weights"):
        raise UserError("shared_embedding=True of tensor2tensor is not supported without the softmax's weights")
    if values.get("max_length") == 0:
        ours["max_length"] = values.get("batch_size", base.batch_size)
    # Until 2018 there was no schedule but this one.
    schedule = values.get("learning_rate_schedule", "legacy" if "learning_rate_decay_scheme" in values else "")
    if schedule:
        ours["learning_rate_schedule"] = schedule
    scheme = values.get("learning_rate_decay_scheme", "noam")
    if schedule == "legacy" and scheme != "noam":
        raise UserError(
            f"learning_rate_decay_scheme={scheme!r} of tensor2tensor is not supported; supported: 'noam'; "
            "--hparams=learning_rate_schedule=... puts another schedule in its place"
        )
    if values.get("recurrence_type") in ("gru", "lstm"):
        ours["num_inrecurrence_layers"] = 1  # T2T has it and does not look at it
    if values.get("recurrence_type") != "lstm" and "use_memory_as_final_state" in values:
        ours["use_memory_as_final_state"] = False  # nor at this
    if "multistep" not in str(values.get("optimizer", "")).lower().replace("_", ""):
        ours["optimizer_multistep_accumulate_steps"] = 0  # T2T's other optimizers do not look at it
    if values.get("gate_ffn_layer") == "dense_dropconnect":
        ours["dropconnect_dropout"] = 0.0  # T2T's never drops a connection
    return ours


def _parity(hparams):
    """Returns what brings T2T's formulas back, where the model has them."""
    if hparams.model == "transformer":
        return {}
    switches = {}
    if hparams.recurrence_type == "act":
        switches |= {"act_remainder_at_limit": False, "act_count_padding": True}
    if hparams.recurrence_type == "act" and hparams.act_type == "global":
        switches["global_over"] = "all"
    if hparams.recurrence_type == "dwa":
        switches["dwa_softmax"] = "channels"
    if hparams.recurrence_type == "gru":
        switches["gru_mixes"] = "input"
    if hparams.position_start_index == "step":
        switches["position_step_length"] = "padded"
    return switches
