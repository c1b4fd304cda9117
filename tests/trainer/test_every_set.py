"""Every named set of hyperparameters at tiny width and two steps: built, trained, decoded, saved and loaded; and an
export of every recurrence type.

Sets that are equal once made tiny share one run.
"""

import dataclasses
import functools
import pathlib
import tempfile

import keras
import numpy as np
import pytest

import trainer
from tests.trainer import c_loader
from tests.trainer.saved_runs import STRINGS, algorithmic_run
from tests.ut_keras.test_cached_decoding import full_and_cached
from trainer import devices
from trainer.export import export
from trainer.step import TrainStep, make_optimizer
from ut_keras.hparams import Features
from ut_keras.models.build import build_model
from ut_keras.registry import hparams_sets
from ut_keras.saving import load_model

FEATURES = {
    "_encoder": Features("class", 11, 11, words_per_sentence=3),
    "_lm": Features("sequence", 11, None),
}
PAIRS = {
    "inputs": np.array([[3, 4, 5, 1, 0], [6, 7, 8, 9, 1], [5, 1, 0, 0, 0]], np.int32),
    "targets": np.array([[5, 3, 9, 2, 7, 1], [2, 2, 8, 1, 0, 0], [9, 1, 0, 0, 0, 0]], np.int32),
}
STORIES = {
    "inputs": np.array([[[3, 4, 0], [5, 6, 7], [2, 0, 0]], [[4, 0, 0], [2, 3, 0], [0, 0, 0]]], np.int32),
    "targets": np.array([[5], [7]], np.int32),
}
POLICIES = {"float32": "none", "float16": "mixed_float16", "bfloat16": "mixed_bfloat16"}


def tiny(hparams):
    """Returns a set at width 8, with all of its kinds and options, and the numbers of its recipe made equal."""
    changes = {
        "hidden_size": 8,
        "filter_size": 16,
        "num_heads": 2,
        "num_rec_steps": 2,
        "act_max_steps": 2,
        "max_relative_position": min(3, hparams.max_relative_position),
        "hard_attention_k": min(2, hparams.hard_attention_k),
        "position_start_range": 20,
        "act_loss_weight": min(0.01, 100 * hparams.act_loss_weight),
        "optimizer_multistep_accumulate_steps": min(2, hparams.optimizer_multistep_accumulate_steps),
        "optimizer_adam_beta2": 0.997,
        "learning_rate": 2.0,
        "learning_rate_constant": 0.1 if "hidden_size" in hparams.learning_rate_schedule else 0.003,
        "learning_rate_warmup_steps": 100,
        "learning_rate_decay_steps": 100,
        "train_steps": 1000,
        "eval_every": 100,
        "batch_size": 16,
        "use_fixed_batch_size": True,
        "max_length": 20,
    }
    for rate in ("layer_prepostprocess_dropout", "attention_dropout", "relu_dropout", "label_smoothing"):
        changes[rate] = min(0.1, getattr(hparams, rate))
    if not hparams.model.startswith("universal"):
        changes["num_hidden_layers"] = 2
    return dataclasses.replace(hparams, **changes)


@functools.cache
def run(hparams):
    """Trains a tiny set five steps and checks all that the tests' names say; raises where something is wrong."""
    classifies = hparams.model.endswith("_encoder")
    kind = next((ending for ending in FEATURES if hparams.model.endswith(ending)), None)
    features = FEATURES.get(kind, Features("sequence", 11, 11))
    batch = STORIES if classifies else {"targets": PAIRS["targets"]} if kind == "_lm" else PAIRS
    half = hparams.activation_dtype != "float32"
    keras.utils.set_random_seed(1)
    with devices.precision(POLICIES[hparams.activation_dtype]):
        model = build_model(hparams, features)
        train(model, hparams, batch)
        if classifies:
            likeliest = model(batch).numpy()[:, 1:].argmax(axis=-1) + 1  # no class is padding
            np.testing.assert_array_equal(model.generate(batch["inputs"])[:, 0], likeliest)
        else:
            decode(model, kind == "_lm", 0.03 if half else 2e-5)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.keras"
            model.save(path)
            np.testing.assert_allclose(load_model(path)(batch).numpy(), model(batch).numpy(), rtol=1e-6, atol=1e-6)
    return True


def train(model, hparams, batch):
    """Makes five updates: their losses are finite, and every weight has moved."""
    optimizer = make_optimizer(hparams, model)
    step = TrainStep(model, optimizer, hparams, None, accumulation=hparams.optimizer_multistep_accumulate_steps or 1)
    before = [weight.numpy() for weight in model.trainable_variables]
    measured = [step(batch, number) for number in range(5)]
    losses = [float(one["loss"]) for one in measured]
    assert np.all(np.isfinite(losses)), losses
    assert [float(one["applied"]) for one in measured] == [1.0] * 5
    moved = [np.any(weight.numpy() != old) for weight, old in zip(model.trainable_variables, before, strict=True)]
    still = [weight.path for weight, it in zip(model.trainable_variables, moved, strict=True) if not it]
    if hparams.recurrence_type == "dwa":  # its softmax over the steps does not see a bias that they share
        still = [path for path in still if not path.endswith("type/bias")]
    assert still == []
    assert int(optimizer.iterations) == 5


def decode(model, language_model, atol):
    """Cached decoding is the full pass: logits of given targets, and each id of the model's own greedy answer."""
    (full, full_times), (cached, cached_times) = full_and_cached(model, prefix=1, beams=2)
    np.testing.assert_allclose(cached, full, rtol=1e-4, atol=atol)
    np.testing.assert_array_equal(cached_times, full_times)
    prompts = np.array([[3, 4], [6, 2]], np.int32) if language_model else PAIRS["inputs"]
    answer = model.generate(prompts, max_length=6)
    x = {"targets": answer} if language_model else {"inputs": prompts, "targets": answer}
    logits = model(x).numpy()[..., 1:]  # no answer holds padding
    chosen = np.take_along_axis(logits, np.maximum(answer, 1)[..., np.newaxis] - 1, axis=-1)[..., 0]
    made = (answer != 0) & (np.arange(answer.shape[1]) >= (2 if language_model else 0))
    assert made.any()
    assert np.all((logits.max(axis=-1) - chosen)[made] <= 2 * atol)


@pytest.mark.slow
@pytest.mark.parametrize("name", hparams_sets.names())
def test_every_set_trains_decodes_saves_and_loads(name):
    assert run(tiny(hparams_sets.get(name)()))


EXPORTS = {
    "basic": {},
    "act": {"recurrence_type": "act", "act_type": "frozen"},
    "highway": {"recurrence_type": "highway"},
    "skip": {"recurrence_type": "skip", "num_rec_steps": 4},  # with two it answers nothing
    "dwa": {"recurrence_type": "dwa"},
    "rnn": {"recurrence_type": "rnn"},
    "gru": {"recurrence_type": "gru"},
    "lstm": {"recurrence_type": "lstm", "use_memory_as_final_state": True},
    "mixed, SRU, hard and relative": {
        "mix_with_transformer": "before_ut,after_ut",
        "add_sru": True,
        "hard_attention_k": 3,
        "self_attention_type": "dot_product_relative",
        "max_relative_position": 3,
    },
}


@pytest.mark.slow
@pytest.mark.skipif(bool(c_loader.missing()), reason=str(c_loader.missing()))
@pytest.mark.parametrize("kind", EXPORTS)
def test_cpp_loader_gives_the_answers_of_every_recurrence_type(tmp_path, kind):
    algorithmic_run(tmp_path / "run", **{"num_rec_steps": 2, "act_max_steps": 2, **EXPORTS[kind]})
    loaded = trainer.load(tmp_path / "run")
    directory = export(loaded, tmp_path / "export")
    expected = loaded.decode(STRINGS)
    found = c_loader.run(directory, STRINGS)
    assert found["outputs"].tolist() == [answer.text for answer in expected]
    np.testing.assert_allclose(found["scores"], [answer.score for answer in expected], rtol=1e-5, atol=1e-5)
    assert any(found["outputs"]), "an untrained model that answers nothing tests nothing"
