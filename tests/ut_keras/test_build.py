"""From hyperparameters and features to a model."""

import keras
import numpy as np
import pytest

from ut_keras import (
    Classifier,
    LSTMSeq2Seq,
    PointerClassifier,
    Transformer,
    UniversalTransformer,
    UniversalTransformerLM,
)
from ut_keras.errors import UsageError
from ut_keras.hparams import Features, HParams
from ut_keras.models.build import build_model
from ut_keras.models.transformer import TransformerEncoder, TransformerLM
from ut_keras.registry import models

SEQUENCE = Features("sequence", 7, 7)
CLASS = Features("class", 5, 7, words_per_sentence=3, same_vocabulary=False)
POINTER = Features("class", 7, 7, pointer=True)
LANGUAGE = Features("sequence", 7)


def hparams(model, **changes):
    sizes = {"hidden_size": 8, **changes}
    if not model.startswith("lstm"):
        sizes = {"num_heads": 2, "filter_size": 16, **sizes}
    return HParams(model=model).override(sizes)


@pytest.mark.parametrize(
    ("name", "features", "kind"),
    [
        ("universal_transformer", SEQUENCE, UniversalTransformer),
        ("universal_transformer", LANGUAGE, UniversalTransformerLM),
        ("universal_transformer_lm", LANGUAGE, UniversalTransformerLM),
        ("universal_transformer_encoder", CLASS, Classifier),
        ("transformer", SEQUENCE, Transformer),
        ("transformer", LANGUAGE, TransformerLM),
        ("transformer_lm", LANGUAGE, TransformerLM),
        ("transformer_encoder", CLASS, Classifier),
        ("universal_transformer_encoder", POINTER, PointerClassifier),
        ("transformer_encoder", POINTER, PointerClassifier),
        ("lstm_seq2seq", SEQUENCE, LSTMSeq2Seq),
        ("lstm_seq2seq_attention", SEQUENCE, LSTMSeq2Seq),
    ],
)
def test_name_and_features_choose_the_model_whose_variables_then_exist(name, features, kind):
    model = models.get(name)(hparams(name), features)
    assert type(model) is kind
    count = model.count_params()
    batch = {"inputs": np.array([[3, 4, 1]]), "targets": np.array([[2, 1]])}
    if features.words_per_sentence:
        batch["inputs"] = np.array([[[3, 4, 1]]])
    assert model(batch).shape[-1] == features.target_vocabulary_size
    assert model.count_params() == count
    if kind in (Classifier, PointerClassifier):
        assert isinstance(model.encoder, TransformerEncoder) == (name == "transformer_encoder")
    if kind is LSTMSeq2Seq:
        assert (model.attention is not None) == name.endswith("attention")


@pytest.mark.parametrize(
    ("name", "features", "message"),
    [
        ("universal_transformer", CLASS, "one class per example.*universal_transformer_encoder, transformer_encoder"),
        ("lstm_seq2seq", CLASS, "one class per example"),
        ("universal_transformer_encoder", SEQUENCE, "a sequence from inputs.*: universal_transformer, tr"),
        ("universal_transformer_lm", SEQUENCE, "a sequence from inputs"),
        ("lstm_seq2seq", LANGUAGE, "no inputs.*universal_transformer_lm"),
        ("transformer_encoder", LANGUAGE, "no inputs"),
    ],
)
def test_a_model_that_cannot_learn_the_problem_is_refused_with_those_that_can(name, features, message):
    with pytest.raises(UsageError, match=f"model '{name}' does not fit this problem \\({message}") as error:
        build_model(hparams(name), features)
    assert "\n" not in str(error.value)


def test_every_hyperparameter_of_the_recurrence_arrives():
    changes = {
        "recurrence_type": "act",
        "act_type": "frozen",
        "act_max_steps": 5,
        "act_epsilon": 0.2,
        "act_halting_bias_init": -3.0,
        "act_loss_weight": 0.7,
        "act_loss_warmup_steps": 11,
        "act_remainder_at_limit": False,
        "act_count_padding": True,
        "global_over": "all",
        "num_inrecurrence_layers": 2,
        "transformer_ffn_type": "sepconv",
        "layer_preprocess_sequence": "none",
        "layer_postprocess_sequence": "dan",
        "norm_epsilon": 1e-3,
        "self_attention_type": "dot_product_relative",
        "max_relative_position": 4,
        "use_pad_remover": False,
        "timing_layout": "paper",
        "position_start_index": "step",
        "position_step_length": "padded",
        "step_timing_signal_type": "sinusoid",
        "add_or_concat_timing_signal": "concat",
        "input_position_numbering": "end",
        "multiply_embedding_mode": "none",
        "use_target_space_embedding": True,
        "target_space_id": 5,
        "layer_prepostprocess_dropout": 0.1,
        "attention_dropout": 0.2,
        "relu_dropout": 0.3,
        "remat": True,
    }
    model = build_model(hparams("universal_transformer", **changes), SEQUENCE)
    config = model.encoder.body.get_config()
    halting = config.pop("halting")["config"]
    for name, value in (("form", "frozen"), ("epsilon", 0.2), ("bias_initializer", -3.0), ("global_over", "all")):
        assert halting[name] == value
    assert not halting["remainder_at_limit"]
    assert halting["count_padding"]
    expected = {
        "max_steps": 5,
        "num_blocks": 2,
        "transition": "sepconv",
        "norm": "post",
        "norm_epsilon": 1e-3,
        "max_relative_position": 4,
        "zero_padding": False,
        "input_dropout": 0.1,
        "residual_dropout": 0.1,
        "attention_dropout": 0.2,
        "relu_dropout": 0.3,
        "remat": True,
    }
    assert {name: config[name] for name in expected} == expected
    signal = {"layout": "paper", "position": True, "step": "sinusoid", "combine": "concat", "shift_by_step": True}
    assert config["signal"] == signal
    options = model.get_config()
    assert (options["ponder_weight"], options["ponder_warmup_steps"]) == (0.7, 11)
    assert (options["numbering"], options["step_length"], options["target_space_id"]) == ("end", "padded", 5)
    assert not options["scale_embedding"]
    decoder = model.decoder.body.get_config()
    assert decoder.pop("causal")
    assert decoder.pop("cross_attention")
    assert {name: decoder[name] for name in expected} == expected


def test_fixed_steps_have_no_halting_and_their_own_depth():
    model = build_model(hparams("universal_transformer", num_rec_steps=3, act_max_steps=9), SEQUENCE)
    assert model.encoder.body.halting is None
    assert model.encoder.body.max_steps == model.decoder.body.max_steps == 3
    assert model.ponder_weight == 0


def test_random_offset_needs_its_start_index():
    with_range = build_model(hparams("universal_transformer", position_start_index="random"), SEQUENCE)
    assert with_range.random_offset == 400
    assert build_model(hparams("universal_transformer"), SEQUENCE).random_offset == 0


@pytest.mark.parametrize(
    ("features", "tables"),
    [
        (SEQUENCE, 1),
        (Features("sequence", 7, 7, same_vocabulary=False), 3),
        (Features("sequence", 7, 9), 3),
    ],
)
def test_tables_are_shared_where_the_ids_are_the_same(features, tables):
    model = build_model(hparams("universal_transformer"), features)
    embeddings = {id(layer) for layer in (model.input_embedding, model.target_embedding, model.softmax)}
    assert len(embeddings) == tables


def test_the_policy_given_is_taken():
    model = build_model(hparams("universal_transformer"), SEQUENCE, dtype="mixed_bfloat16")
    assert model.compute_dtype == "bfloat16"
    assert {weight.dtype for weight in model.trainable_variables} == {"float32"}
    assert keras.mixed_precision.global_policy().name == "float32"
