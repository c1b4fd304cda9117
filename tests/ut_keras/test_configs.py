"""The named sets: tensor2tensor's values under tensor2tensor's names, ours beside them, and a model for each."""

import dataclasses
import re

import pytest

from tests import golden_files
from ut_keras.hparams import Features, HParams
from ut_keras.models.build import body_arguments, build_model
from ut_keras.registry import hparams_sets, models

PRESETS = golden_files.load_json("presets")
FEATURES = {
    "universal_transformer_encoder": Features("class", 6, 9, words_per_sentence=3),
    "transformer_encoder": Features("class", 6, 9, words_per_sentence=3),
    "universal_transformer_lm": Features("sequence", 9, None),
}
RECURRENT = [name for name in PRESETS if "universal_transformer" in name]

# What T2T's keys that are no hparams of ours stand for: {key: function (theirs, ours) -> whether ours does it}.
STAND_INS = {
    # Positions: T2T's plain models add the signal where pos is timing; its universal ones set pos to None and add it
    # in every step.
    "pos": lambda theirs, ours: ours.add_position_timing_signal == (theirs["pos"] == "timing" or _is_ut(theirs)),
    # Kernels: variance scaling by both fans, uniform, gain 1: Glorot's, which all of our kernels have (test below).
    "initializer": lambda theirs, ours: theirs["initializer"] == "uniform_unit_scaling",
    "initializer_gain": lambda theirs, ours: theirs["initializer_gain"] == 1.0,
    # Universal sets: only the defaults of num_rec_steps and act_max_steps read it, and these are compared themselves.
    "num_hidden_layers": lambda theirs, ours: _is_ut(theirs) and "num_hidden_layers" not in ours.relevant(),
    "optimizer": lambda theirs, ours: theirs["optimizer"] == "Adafactor" and ours.optimizer == "adafactor",
}

BASE = {
    "model": "transformer",
    "hidden_size": 512,
    "filter_size": 2048,
    "num_heads": 8,
    "num_hidden_layers": 6,
    "batch_size": 4096,
    "max_length": 256,
    "clip_grad_norm": 0.0,
    "optimizer": "adam",
    "optimizer_multistep_accumulate_steps": 0,
    "optimizer_adam_beta1": 0.9,
    "optimizer_adam_beta2": 0.997,
    "optimizer_adam_epsilon": 1e-9,
    "weight_decay": 0.0,
    "label_smoothing": 0.1,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "norm_epsilon": 1e-6,
    "learning_rate": 0.2,
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
    "learning_rate_constant": 2.0,
    "learning_rate_warmup_steps": 8000,
    "add_position_timing_signal": True,
    "self_attention_type": "dot_product",
    "max_relative_position": 0,
    "hard_attention_k": 0,
    "activation_dtype": "float32",
    "use_target_space_embedding": True,
    "shared_embedding_and_softmax_weights": True,
    "use_pad_remover": True,
}
TPU = {
    "optimizer": "adafactor",
    "learning_rate_schedule": "rsqrt_decay",
    "learning_rate_warmup_steps": 10000,
    "max_length": 64,
    "batch_size": 2048,
}
RELATIVE = {
    "add_position_timing_signal": False,
    "self_attention_type": "dot_product_relative",
    "max_relative_position": 20,
}
V2 = {
    "optimizer_adam_beta2": 0.98,
    "learning_rate_schedule": "legacy",
    "learning_rate_constant": 1.0,
}
TINY = {"num_hidden_layers": 2, "hidden_size": 128, "filter_size": 512, "num_heads": 4}
SMALL = {"num_hidden_layers": 2, "hidden_size": 256, "filter_size": 1024, "num_heads": 4}
BIG = {"hidden_size": 1024, "filter_size": 4096, "num_heads": 16, "layer_prepostprocess_dropout": 0.3}
# T2T's sets of the plain Transformer, as changes of BASE: models/transformer.py at its last commit.
PLAIN = {
    "transformer_base": {},
    "transformer_base_v3": {},
    "transformer_base_v2": V2,
    "transformer_base_v1": {
        **V2,
        "layer_preprocess_sequence": "none",
        "layer_postprocess_sequence": "dan",
        "attention_dropout": 0.0,
        "relu_dropout": 0.0,
        "learning_rate": 0.1,
        "learning_rate_warmup_steps": 4000,
    },
    "transformer_big": {**BIG, "batch_size": 2048},
    "transformer_base_single_gpu": {
        "batch_size": 1024,
        "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
        "learning_rate_constant": 0.1,
        "learning_rate_warmup_steps": 16000,
    },
    "transformer_big_single_gpu": {
        **BIG,
        "batch_size": 2048,
        "layer_prepostprocess_dropout": 0.1,
        "learning_rate_warmup_steps": 16000,
    },
    "transformer_base_multistep8": {"optimizer_multistep_accumulate_steps": 8},
    "transformer_small": SMALL,
    "transformer_tiny": TINY,
    "transformer_teeny": {"hidden_size": 128, "filter_size": 128, "num_heads": 2},
    "transformer_relative": RELATIVE,
    "transformer_relative_tiny": {**RELATIVE, **TINY},
    "transformer_relative_big": {**RELATIVE, **BIG, "batch_size": 2048},
    "transformer_tpu": TPU,
    "transformer_packed_tpu": TPU,
    "transformer_tiny_tpu": {**TINY, **TPU},
    "transformer_small_tpu": {**SMALL, **TPU},
    "transformer_big_tpu": {**BIG, **TPU},
}
# What presets.json does not hold of T2T's universal sets, which inherit BASE's recipe.
BEYOND_PRESETS = {
    "universal_transformer_base_fp16": {"activation_dtype": "float16"},
    "universal_transformer_small_dropconnect": {"gate_ffn_layer": "dense_dropconnect", "dropconnect_dropout": 0.5},
    "adaptive_universal_transformer_multilayer_hard": {"hard_attention_k": 8},
}
GATES = {
    "gate_ffn_layer": "dense",
    "couple_carry_transform_gates": True,
    "depth_embedding": True,
    "dwa_elements": True,
    "use_memory_as_final_state": False,
    "add_ffn_unit_to_the_transition_function": False,
    "hard_attention_k": 0,
}


def _is_ut(preset):
    return "recurrence_type" in preset


def test_every_set_of_tensor2tensor_is_there():
    assert len(PRESETS) == 47
    assert len(RECURRENT) == 42
    assert set(PRESETS) | set(PLAIN) <= set(hparams_sets.names())


@pytest.mark.parametrize("name", PRESETS)
def test_tensor2tensors_sets_hold_its_values(name):
    """Every key is equal, or in the table that says what stands for it."""
    hparams, theirs = hparams_sets.get(name)(), PRESETS[name]
    ours = hparams.relevant()
    assert hparams.model == ("universal_transformer" if _is_ut(theirs) else "transformer")
    different = {key for key in theirs if key not in ours or ours[key] != theirs[key]}
    assert different <= set(STAND_INS)
    assert [key for key in different if not STAND_INS[key](theirs, hparams)] == []


@pytest.mark.parametrize("name", RECURRENT)
def test_tensor2tensors_values_that_the_golden_file_does_not_hold(name):
    ours = hparams_sets.get(name)().relevant()
    tpu = {"learning_rate", "learning_rate_constant", "optimizer_multistep_accumulate_steps", "activation_dtype"}
    expected = {**{key: BASE[key] for key in tpu}, **GATES, **BEYOND_PRESETS.get(name, {})}
    assert {key: ours[key] for key in expected} == expected


@pytest.mark.parametrize("name", PLAIN)
def test_tensor2tensors_plain_sets_hold_its_values(name):
    ours, expected = hparams_sets.get(name)().relevant(), {**BASE, **PLAIN[name]}
    assert {key: ours[key] for key in expected} == expected


def test_kernels_are_glorot_uniform_as_tensor2tensors_uniform_unit_scaling_of_gain_1():
    hparams = dataclasses.replace(hparams_sets.get("universal_transformer_tiny")(), hidden_size=64, filter_size=256)
    model = build_model(hparams, Features("sequence", 9, 9))
    kernels = [weight.numpy() for weight in model.trainable_variables if weight.path.endswith("ffn/kernel1")]
    assert len(kernels) == 2
    for kernel in kernels:
        assert kernel.shape == (64, 256)
        limit = (6 / (64 + 256)) ** 0.5
        assert 0.99 * limit < abs(kernel).max() <= limit
        assert abs(kernel.std() - limit / 3**0.5) < 0.01 * limit


def test_the_paper_sets_have_the_papers_equations():
    names = [name for name in hparams_sets.names() if name.endswith("_paper")]
    assert len(names) == 13
    equations = {
        "layer_preprocess_sequence": "none",
        "layer_postprocess_sequence": "dan",
        "timing_layout": "paper",
        "step_timing_signal_type": "sinusoid",
        "add_or_concat_timing_signal": "add",
        "add_position_timing_signal": True,
        "add_step_timing_signal": True,
        "use_target_space_embedding": False,
        "act_epsilon": 0.01,
    }
    for name in names:
        hparams = hparams_sets.get(name)()
        assert {key: getattr(hparams, key) for key in equations} == equations, name
        halting = ("act", "frozen") if name.startswith("adaptive_") else ("basic", "basic")
        assert (hparams.recurrence_type, hparams.act_type) == halting, name
        translates = name in ("universal_transformer_base_paper", "universal_transformer_small_paper")
        assert hparams.transformer_ffn_type == ("fc" if translates else "sepconv"), name


def test_sets_of_algorithmic_tasks_draw_offsets_below_400():
    for name in ("universal_transformer_algorithmic", "universal_transformer_algorithmic_paper"):
        hparams = hparams_sets.get(name)()
        assert (hparams.position_start_index, hparams.position_start_range) == ("random", 400)


@pytest.mark.parametrize("name", hparams_sets.names())
def test_the_steps_and_the_halting_of_every_set_reach_its_layers(name):
    hparams = hparams_sets.get(name)()
    assert hparams.model in models
    universal = hparams.model.startswith("universal")
    arguments = body_arguments(hparams, universal)
    if not universal:
        assert arguments["max_steps"] == hparams.num_hidden_layers
    elif hparams.recurrence_type == "act":
        assert arguments["max_steps"] == hparams.act_max_steps
        assert arguments["halting"]["config"]["form"] == hparams.act_type
    else:
        assert (arguments["max_steps"], arguments["halting"]) == (hparams.num_rec_steps, "none")


@pytest.mark.parametrize(
    "name",
    [
        "adaptive_universal_transformer_babi",
        "adaptive_universal_transformer_tiny",
        "universal_transformer_text_lm",
        "transformer_tiny",
        "transformer_babi",
        "lstm_seq2seq_attention",
    ],
)
def test_a_set_builds_its_model(name):
    """Scaled down in width: heads of two channels. Every set trains in tests/trainer/test_every_set.py."""
    hparams = hparams_sets.get(name)()
    small = dataclasses.replace(hparams, hidden_size=2 * hparams.num_heads, filter_size=8)
    model = build_model(small, FEATURES.get(hparams.model, Features("sequence", 9, 9)))
    assert model.count_params() > 0


@pytest.mark.parametrize("name", hparams_sets.names())
def test_every_set_survives_its_file_and_says_what_it_is(name):
    hparams = hparams_sets.get(name)()
    assert HParams.from_json(hparams.to_json()) == hparams
    assert hparams.override(hparams.relevant()) == hparams, "an irrelevant field differs from its default"
    assert hparams_sets.summary(name).endswith(".")
    if name in PRESETS or name in PLAIN:
        assert re.match(rf"T2T's {name}\W", hparams_sets.summary(name))
