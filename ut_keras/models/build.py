"""From hyperparameters under tensor2tensor's names to a model: the one place that maps the one to the other."""

from ut_keras.errors import UsageError
from ut_keras.layers.halting import AdaptiveComputationTime
from ut_keras.models.classifier import Classifier
from ut_keras.models.encoder import UniversalTransformerEncoder
from ut_keras.models.language_model import UniversalTransformerLM
from ut_keras.models.lstm import LSTMSeq2Seq
from ut_keras.models.pointer import PointerClassifier
from ut_keras.models.transformer import Transformer, TransformerEncoder, TransformerLM
from ut_keras.models.universal_transformer import UniversalTransformer

# The hyperparameters that are a recurrence type's own arguments, under the same names.
_GATED = (
    "gates_inputs",
    "gate_ffn_layer",
    "dropconnect_dropout",
    "transform_bias_init",
    "couple_carry_transform_gates",
)
_OF_TYPE = {
    "highway": _GATED,
    "skip": _GATED,
    "dwa": ("depth_embedding", "dwa_elements", "dwa_softmax"),
    "rnn": ("add_ffn_unit_to_the_transition_function",),
    "gru": ("add_ffn_unit_to_the_transition_function", "gru_mixes"),
    "lstm": ("add_ffn_unit_to_the_transition_function", "lstm_forget_bias", "use_memory_as_final_state"),
}


def build_model(hparams, features, dtype=None):
    """Returns the model of a problem, with all of its variables.

    Args:
        hparams: `HParams`; `hparams.model` names the model.
        features: `Features` of the problem.
        dtype: dtype policy; None: Keras' global one. `hparams.activation_dtype` is not looked at: the trainer makes it
            the global policy.

    Raises:
        UsageError: the model cannot learn this problem: a class needs an encoder with a class head, a sequence a
            decoder, and a problem without inputs a language model.
    """
    name = hparams.model
    recurrent = name.startswith("universal_transformer")
    kind = "class" if features.target == "class" else "sequence" if features.input_vocabulary_size else "language"
    fitting = {
        "class": ("universal_transformer_encoder", "transformer_encoder"),
        "sequence": ("universal_transformer", "transformer", "lstm_seq2seq", "lstm_seq2seq_attention"),
        "language": ("universal_transformer", "universal_transformer_lm", "transformer", "transformer_lm"),
    }[kind]
    if name not in fitting:
        asks = {"class": "one class per example", "sequence": "a sequence from inputs", "language": "no inputs"}[kind]
        raise UsageError(f"model {name!r} does not fit this problem ({asks}); use one of: {', '.join(fitting)}")
    if name.startswith("lstm"):
        return LSTMSeq2Seq(
            features.input_vocabulary_size,
            features.target_vocabulary_size,
            hidden_size=hparams.hidden_size,
            num_layers=hparams.num_hidden_layers,
            attention=name.endswith("attention"),
            dropout=hparams.layer_prepostprocess_dropout,
            words_per_sentence=features.words_per_sentence,
            dtype=dtype,
        )
    shared = hparams.shared_embedding_and_softmax_weights
    options = {
        "hidden_size": hparams.hidden_size,
        "shared_embedding": shared,
        "scale_embedding": hparams.multiply_embedding_mode == "sqrt_depth",
        "step_length": hparams.position_step_length,
        "random_offset": hparams.position_start_range if hparams.position_start_index == "random" else 0,
        "ponder_weight": hparams.act_loss_weight,
        "ponder_warmup_steps": hparams.act_loss_warmup_steps,
        "dtype": dtype,
        **body_arguments(hparams, recurrent),
    }
    if kind == "language":
        model_class = UniversalTransformerLM if recurrent else TransformerLM
        return model_class(features.target_vocabulary_size, max_length=hparams.max_length, **options)
    options |= {
        "words_per_sentence": features.words_per_sentence,
        "numbering": hparams.input_position_numbering,
        "target_space_id": hparams.target_space_id if hparams.use_target_space_embedding else None,
    }
    if kind == "class":
        encoder_class = UniversalTransformerEncoder if recurrent else TransformerEncoder
        encoder = encoder_class(features.input_vocabulary_size, **options)
        return (PointerClassifier if features.pointer else Classifier)(encoder, features.target_vocabulary_size)
    model_class = UniversalTransformer if recurrent else Transformer
    options["shared_embedding"] = (
        shared and features.same_vocabulary and features.input_vocabulary_size == features.target_vocabulary_size
    )
    return model_class(features.input_vocabulary_size, features.target_vocabulary_size, **options)


def body_arguments(hparams, recurrent=True):
    """Returns the keyword arguments of `UniversalRecurrence` (or `BlockStack`) that the hyperparameters say."""
    relative = hparams.self_attention_type.startswith("dot_product_relative")
    signal = {"layout": hparams.timing_layout, "position": hparams.add_position_timing_signal}
    arguments = {
        "num_heads": hparams.num_heads,
        "filter_size": hparams.filter_size,
        "transition": hparams.transformer_ffn_type,
        "norm": "pre" if hparams.layer_preprocess_sequence == "n" else "post",
        "norm_epsilon": hparams.norm_epsilon,
        "residual_dropout": hparams.layer_prepostprocess_dropout,
        "attention_dropout": hparams.attention_dropout,
        "relu_dropout": hparams.relu_dropout,
        "input_dropout": hparams.layer_prepostprocess_dropout,
        "max_relative_position": hparams.max_relative_position if relative else 0,
        "hard_attention_k": hparams.hard_attention_k,
        "zero_padding": hparams.use_pad_remover,
        "remat": hparams.remat,
        "signal": signal,
    }
    if not recurrent:
        return {**arguments, "max_steps": hparams.num_hidden_layers}
    signal |= {
        "step": hparams.step_timing_signal_type if hparams.add_step_timing_signal else "none",
        "combine": hparams.add_or_concat_timing_signal,
        "shift_by_step": hparams.position_start_index == "step",
    }
    adaptive = hparams.recurrence_type == "act"
    return {
        **arguments,
        "max_steps": hparams.act_max_steps if adaptive else hparams.num_rec_steps,
        "halting": halting_of(hparams) if adaptive else "none",
        "num_blocks": hparams.num_inrecurrence_layers,
        "recurrence": recurrence_of(hparams),
        "sru": hparams.add_sru,
        "mix": hparams.mix_with_transformer,
        "num_mixedin_layers": hparams.num_mixedin_layers,
    }


def recurrence_of(hparams):
    """Returns the argument `recurrence` of `UniversalRecurrence`: "basic" (act too), or a type with its arguments."""
    names = _OF_TYPE.get(hparams.recurrence_type)
    if names is None:
        return "basic"
    return {"type": hparams.recurrence_type, **{name: getattr(hparams, name) for name in names}}


def halting_of(hparams):
    """Returns the halting layer's serialised form; each side of a model makes its own from it."""
    import keras

    layer = AdaptiveComputationTime(
        form=hparams.act_type,
        epsilon=hparams.act_epsilon,
        bias_initializer=hparams.act_halting_bias_init,
        remainder_at_limit=hparams.act_remainder_at_limit,
        count_padding=hparams.act_count_padding,
        global_over=hparams.global_over,
    )
    return keras.saving.serialize_keras_object(layer)
