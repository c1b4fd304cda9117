"""Weights and hyperparameters of tensor2tensor's models -> ours."""

import re

import numpy as np

from ut_keras.errors import UserError
from ut_keras.models.build import body_arguments
from ut_keras.models.classifier import Classifier
from ut_keras.models.encoder import UniversalTransformerEncoder
from ut_keras.models.language_model import UniversalTransformerLM
from ut_keras.models.transformer import Transformer, TransformerLM
from ut_keras.models.universal_transformer import UniversalTransformer
from ut_keras.registry import near_names
from ut_keras.tensor2tensor_checkpoint import T2tCheckpoint, find_checkpoint, join_shards
from ut_keras.tensor2tensor_hparams import hparams_from_t2t
from ut_keras.tensor2tensor_names import named_variables

_HEAD = re.compile(r".*/class_label_modality_(\d+)_\d+/dense/(kernel|bias)")
_NEVER = 20.0  # below the least bias: that of the ids which are no class of T2T's


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
    """Puts T2T's weights into our model and returns {T2T variable name: our variable}.

    Raises:
        UserError: a missing, unknown or misshapen variable; none has been put then.
    """
    arrays = join_shards(weights)
    variables = t2t_variables(model, hparams, arrays)
    arrays = with_reserved_classes(arrays, variables, _NEVER)
    for name in variables:
        if name not in arrays:
            raise UserError(f"variable {name} is not in the checkpoint{near_names(name, arrays)}")
    for name in arrays:
        if name not in variables:
            raise UserError(f"variable {name} of the checkpoint is not in the model{near_names(name, variables)}")
    for name, variable in variables.items():
        shape = np.shape(arrays[name])
        if _without_ones(shape) != _without_ones(variable.shape):
            raise UserError(f"variable {name} has shape {shape}, the model wants {tuple(variable.shape)}")
    for name, variable in variables.items():
        variable.assign(np.asarray(arrays[name]).reshape(variable.shape))
    return variables


def t2t_variables(model, hparams, names=()):
    """Returns {T2T variable name: our variable}, also of a `Classifier`.

    Args:
        names: those of a checkpoint, for T2T calls the table of a classifier's inputs `shared` or `input_emb`, after
            its number of classes.
    """
    if not isinstance(model, Classifier):
        return named_variables(model, hparams)
    head = f"{hparams.model}/class_label_modality_{model.num_classes}_{hparams.hidden_size}/dense"
    classes = {f"{head}/kernel": model.classes.kernel, f"{head}/bias": model.classes.bias}
    found = {**named_variables(model.encoder, hparams), **classes}
    apart = any(name.endswith("/input_emb/weights") for name in names)
    return {name.replace("/shared/", "/input_emb/") if apart else name: found[name] for name in found}


def with_reserved_classes(arrays, variables, never=0.0):
    """Returns `arrays` with the head of T2T's classes, 0 to V - 1, as that of ours, 2 to V + 1.

    Ours have the ids of padding and end token before them. Their columns are 0 and their biases `never` below the
    least: what T2T does not know it does not answer. A head of as many classes as ours stays as it is.
    """
    heads = {match[2]: name for name, match in ((name, _HEAD.fullmatch(name)) for name in variables) if match}
    result = {}
    for name, array in arrays.items():
        head = _HEAD.fullmatch(name)
        ours = heads.get(head[2]) if head else None
        if ours and name != ours and variables[ours].shape[-1] == int(head[1]) + 2:
            least = np.min(array) - never if head[2] == "bias" and never else 0.0
            pad = [(0, 0)] * (array.ndim - 1) + [(2, 0)]
            name, array = ours, np.pad(array, pad, constant_values=least)
        result[name] = array
    return result


def read_checkpoint(path):
    """Returns {name: array} of the model's variables in a T2T (TF1) checkpoint, see `T2tCheckpoint.weights`.

    Args:
        path: its directory, or the checkpoint's own path.
    """
    return T2tCheckpoint(find_checkpoint(path)).weights()


def _without_ones(shape):
    return tuple(size for size in shape if size != 1)
