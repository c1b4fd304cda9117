"""Weights and hyperparameters of tensor2tensor's models -> ours.

Formulas are T2T's where they differ from our defaults: padding halts and counts, no remainder at the step
limit, start index "step" over the padded length, `global` halting over the whole sequence.
"""

import numpy as np

from ut_keras.errors import UserError
from ut_keras.hparams import HParams
from ut_keras.models.build import body_arguments
from ut_keras.models.encoder import UniversalTransformerEncoder
from ut_keras.models.language_model import UniversalTransformerLM
from ut_keras.models.transformer import Transformer, TransformerLM
from ut_keras.models.universal_transformer import UniversalTransformer
from ut_keras.registry import near_names

_MODELS = {
    "ut": "universal_transformer",
    "ut_enc": "universal_transformer_encoder",
    "transformer": "transformer",
}
# T2T's options that change what is computed, and their values that we compute.
_COMPUTED = {
    "recurrence_type": ("basic", "act"),
    "mix_with_transformer": (None,),
    "add_sru": (False,),
    "pos": (None, "timing"),
    "ffn_layer": ("dense_relu_dense",),
    "norm_type": ("layer",),
    "hard_attention_k": (0,),
    "proximity_bias": (False,),
    "causal_decoder_self_attention": (True,),
    "attention_key_channels": (0,),
    "attention_value_channels": (0,),
    "num_encoder_layers": (0,),
    "num_decoder_layers": (0,),
}


def hparams_from_t2t(config):
    """Returns our `HParams` for the configuration of a T2T model.

    Args:
        config: {"model": "ut", "ut_enc" or "transformer", "d": hidden size, "filter", "heads", "effective": T2T's
            resolved hyperparameters, "hp": those that win over them, "use_target_space_embedding",
            "target_space_id"}.

    Raises:
        UserError: an option that we do not have.
    """
    model = _MODELS.get(config["model"], config["model"])
    values = {**config.get("effective", {}), **config.get("hp", {})}
    fields = HParams.__dataclass_fields__
    known = {
        name: value
        for name, value in values.items()
        if name in fields and (not fields[name].metadata["models"] or model in fields[name].metadata["models"])
    }
    for name, computed in _COMPUTED.items():
        if name in values and values[name] not in computed:
            ours = ", ".join(repr(value) for value in computed)
            raise UserError(f"{name}={values[name]!r} of tensor2tensor is not supported; supported: {ours}")
    parity = {}
    if model != "transformer":
        parity = {
            "act_remainder_at_limit": False,
            "act_count_padding": True,
            "global_over": "all",
            "position_step_length": "padded",
        }
    spaces = config.get("use_target_space_embedding", False)
    return HParams(model=model).override(
        {
            **known,
            **parity,
            "hidden_size": config["d"],
            "filter_size": config["filter"],
            "num_heads": config["heads"],
            "use_target_space_embedding": spaces,
            "target_space_id": config.get("target_space_id", 0),
            "timing_layout": "t2t",
            "layer_prepostprocess_dropout": 0.0,
            "attention_dropout": 0.0,
            "relu_dropout": 0.0,
        }
    )


def model_from_t2t(config, weights):
    """Returns our model with a T2T model's configuration and weights, dropout off.

    Args:
        config: the whole `meta_json` dictionary of a golden file, see `hparams_from_t2t`; also "vocab": V and
            "has_input": False for a language model.
        weights: mapping of T2T variable names to arrays.

    Raises:
        UserError: a variable that is missing, is not ours, or has another shape.
    """
    hparams = hparams_from_t2t(config)
    recurrent = hparams.model != "transformer"
    shared = hparams.shared_embedding_and_softmax_weights
    options = {
        "hidden_size": hparams.hidden_size,
        "shared_embedding": shared,
        "scale_embedding": hparams.multiply_embedding_mode == "sqrt_depth",
        "step_length": hparams.position_step_length,
        "ponder_weight": hparams.act_loss_weight,
        **body_arguments(hparams, recurrent),
    }
    if not config.get("has_input", True):
        model = (UniversalTransformerLM if recurrent else TransformerLM)(config["vocab"], **options)
    else:
        options["target_space_id"] = hparams.target_space_id if hparams.use_target_space_embedding else None
        if hparams.model == "universal_transformer_encoder":
            model = UniversalTransformerEncoder(config["vocab"], head="tokens", **options)
        else:
            model = (UniversalTransformer if recurrent else Transformer)(config["vocab"], **options)
    load_weights(model, hparams, weights)
    return model


def load_weights(model, hparams, weights):
    """Puts T2T's weights into our model; UserError for a missing, unknown or misshapen variable."""
    arrays = _join_shards(weights)
    variables = named_variables(model, hparams)
    for name in variables:
        if name not in arrays:
            raise UserError(f"variable {name} is not in the checkpoint{near_names(name, arrays)}")
    for name in arrays:
        if name not in variables:
            raise UserError(f"variable {name} of the checkpoint is not in the model{near_names(name, variables)}")
    for name, variable in variables.items():
        array = np.asarray(arrays[name])
        squeezed = tuple(size for size in array.shape if size != 1)
        if squeezed != tuple(size for size in variable.shape if size != 1):
            raise UserError(f"variable {name} has shape {array.shape}, the model wants {tuple(variable.shape)}")
        variable.assign(array.reshape(variable.shape))


def read_checkpoint(path):
    """Returns {name: array} of the model's variables in a T2T (TF1) checkpoint; optimizer slots are left out."""
    import tensorflow as tf

    try:
        reader = tf.train.load_checkpoint(path)
    except (ValueError, tf.errors.OpError) as error:
        raise UserError(f"{path} is not a checkpoint: {error}".splitlines()[0]) from error
    names = [name for name in reader.get_variable_to_shape_map() if name.split("/")[0] in _MODELS.values()]
    names = [name for name in names if not name.endswith(("/Adam", "/Adam_1")) and "Adafactor" not in name]
    return {name: reader.get_tensor(name) for name in names}


def named_variables(model, hparams):
    """Returns {T2T variable name: our variable} of a whole model; sharded tables under `.../weights`."""
    scope = hparams.model
    recurrence = f"universal_transformer_{hparams.recurrence_type}"
    names = {}
    for side in ("encoder", "decoder"):
        layer = getattr(model, side, None)
        if layer is None:
            continue
        base = f"{scope}/body/{side}"
        inner = base if scope == "transformer" else f"{base}/{recurrence}"
        names |= _body_variables(layer.body, base, inner)
        if getattr(layer, "_spaces", None) is not None:
            names[f"{scope}/body/target_space_embedding/kernel"] = layer._spaces
    return names | _embedding_variables(model, f"{scope}/symbol_modality")


def _body_variables(body, base, inner):
    names = {}
    if body.final_norm is not None:
        names |= _norm_variables(body.final_norm, base)
    timing = body.timing
    if timing._table is not None:
        names[f"{inner}/layer_embedding"] = timing._table
    if timing._projection is not None:
        names[f"{inner}/dense/kernel"] = timing._projection
    halting = getattr(body, "halting", None)
    if halting is not None and halting._kernel is not None:
        names[f"{inner}/sigmoid_activation_for_pondering/dense/kernel"] = halting._kernel
        names[f"{inner}/sigmoid_activation_for_pondering/dense/bias"] = halting._bias
    for block in body.blocks:
        names |= _block_variables(block, f"{inner}/{block.name}")
    return names


def _block_variables(block, base):
    names = {}
    sublayers = [block.self_attention, block.encdec_attention, block.ffn]
    for layer, norm in zip([one for one in sublayers if one is not None], block.norms, strict=True):
        place = "postprocess" if block.norm == "post" else "prepostprocess"
        names |= _norm_variables(norm, f"{base}/{layer.name}", place)
    for attention in sublayers[:2]:
        if attention is None:
            continue
        heads = f"{base}/{attention.name}/multihead_attention"
        names |= {f"{heads}/{part}/kernel": getattr(attention, f"_{part}") for part in ("q", "k", "v")}
        names[f"{heads}/output_transform/kernel"] = attention._output_transform
        if attention.max_relative_position:
            relative = f"{heads}/dot_product_attention_relative/relative_positions"
            names[f"{relative}_keys/embeddings"] = attention._relative_keys
            names[f"{relative}_values/embeddings"] = attention._relative_values
    ffn = block.ffn
    separable = ffn.kind == "sepconv"
    for index in (1, 2):
        part = f"{base}/ffn/" + (f"sepconv_relu_sepconv/conv{index}_single" if separable else f"conv{index}")
        names[f"{part}/{'pointwise_kernel' if separable else 'kernel'}"] = getattr(ffn, f"_kernel{index}")
        names[f"{part}/bias"] = getattr(ffn, f"_bias{index}")
        if separable:
            names[f"{part}/depthwise_kernel"] = ffn._depthwise[index - 1]
    return names


def _norm_variables(norm, base, place="prepostprocess"):
    base = f"{base}/layer_{place}/layer_norm/layer_norm"
    return {f"{base}_scale": norm.scale, f"{base}_bias": norm.bias}


def _embedding_variables(model, modality):
    inputs = getattr(model, "input_embedding", None) or model.embedding
    targets = getattr(model, "target_embedding", None) or inputs
    first = f"{modality}_{inputs.vocabulary_size}_{inputs.hidden_size}"
    if model.softmax is inputs:
        return {f"{first}/shared/weights": inputs.table}
    second = f"{modality}_{targets.vocabulary_size}_{targets.hidden_size}"
    names = {f"{second}/softmax/weights": model.softmax.table}
    if targets is not inputs:
        names[f"{second}/target_emb/weights"] = targets.table
    side = "input_emb" if getattr(model, "encoder", None) is not None else "target_emb"
    return {**names, f"{first}/{side}/weights": inputs.table}


def _join_shards(weights):
    """Joins .../weights_0, weights_1, ... (row shards) to one .../weights."""
    joined, shards = {}, {}
    for name in weights:
        base, _, index = name.rpartition("_")
        if base.endswith("/weights") and index.isdigit():
            shards.setdefault(base, {})[int(index)] = weights[name]
        else:
            joined[name] = weights[name]
    for base, parts in shards.items():
        if sorted(parts) != list(range(len(parts))):
            raise UserError(f"the shards of {base} are not complete: {sorted(parts)}")
        joined[base] = np.concatenate([parts[index] for index in range(len(parts))])
    return joined
