"""The named sets: tensor2tensor's values under tensor2tensor's names, and a model for each."""

import dataclasses

import pytest

from tests import golden_files
from ut_keras.hparams import Features, HParams
from ut_keras.models.build import build_model
from ut_keras.registry import hparams_sets, models

PRESETS = golden_files.load_json("presets")
SHARED = [name for name in hparams_sets.names() if name in PRESETS]
FEATURES = {
    "universal_transformer_encoder": Features("class", 6, 9, words_per_sentence=3),
    "transformer_encoder": Features("class", 6, 9, words_per_sentence=3),
    "universal_transformer_lm": Features("sequence", 9, None),
}


@pytest.mark.parametrize("name", SHARED)
def test_tensor2tensors_sets_hold_its_values(name):
    """On every hyperparameter that both have and that the model of the set reads."""
    ours, theirs = hparams_sets.get(name)().relevant(), PRESETS[name]
    common = set(ours) & set(theirs)
    assert len(common) > 20
    assert {key: ours[key] for key in common} == {key: theirs[key] for key in common}


def test_the_sets_that_the_paper_and_the_readme_of_tensor2tensor_use_are_there():
    expected = {
        f"{prefix}universal_transformer_{size}" for prefix in ("", "adaptive_") for size in ("tiny", "small", "base")
    }
    assert expected | {"universal_transformer_big", "transformer_tiny", "transformer_base"} <= set(SHARED)


@pytest.mark.parametrize("name", hparams_sets.names())
def test_every_set_builds_its_model(name):
    """Scaled down in width: heads of two channels."""
    hparams = hparams_sets.get(name)()
    assert hparams.model in models
    small = dataclasses.replace(hparams, hidden_size=2 * hparams.num_heads, filter_size=8)
    model = build_model(small, FEATURES.get(hparams.model, Features("sequence", 9, 9)))
    assert model.count_params() > 0
    depth = getattr(getattr(model, "encoder", None), "body", None)
    if depth is not None:
        adaptive = hparams.recurrence_type == "act" and hparams.model.startswith("universal")
        steps = hparams.act_max_steps if adaptive else hparams.num_rec_steps
        assert depth.max_steps == (steps if hparams.model.startswith("universal") else hparams.num_hidden_layers)
        assert (getattr(depth, "halting", None) is not None) == adaptive


@pytest.mark.parametrize("name", hparams_sets.names())
def test_every_set_survives_its_file_and_says_what_it_is(name):
    hparams = hparams_sets.get(name)()
    assert HParams.from_json(hparams.to_json()) == hparams
    assert hparams.override(hparams.relevant()) == hparams, "an irrelevant field differs from its default"
    assert hparams_sets.summary(name).endswith(".")
