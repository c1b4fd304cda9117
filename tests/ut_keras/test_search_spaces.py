"""tensor2tensor's ranged sets as data."""

import random
import statistics

import pytest

from ut_keras.errors import UsageError
from ut_keras.hparams import HParams
from ut_keras.models.search_spaces import SEARCH_SPACES, Interval, sample
from ut_keras.registry import hparams_sets

WIDTHS = {
    "hidden_size": (1024, 2048, 4096),
    "filter_size": (2048, 4096, 8192),
    "num_heads": (8, 16, 32),
    "transformer_ffn_type": ("sepconv", "fc"),
}
WARMUPS = (1000, 2000, 4000, 8000, 16000)
RATE, DECAY = (0.3, 3.0, True), (0.0, 2.0, False)
ADAM = {"optimizer_adam_beta1": (0.85, 0.95, False), "optimizer_adam_beta2": (0.97, 0.99, False)}
# T2T's values: models/research/universal_transformer.py and models/transformer.py; (low, high, logarithmic) or choices.
EXPECTED = {
    "universal_transformer_base_range": {
        "num_rec_steps": (6, 8, 10),
        **WIDTHS,
        "learning_rate": RATE,
        "weight_decay": DECAY,
    },
    "adaptive_universal_transformer_base_range": {
        "act_max_steps": (8, 16, 32),
        "act_loss_weight": (0.0, 0.5, False),
        **WIDTHS,
        "learning_rate": RATE,
        "weight_decay": DECAY,
    },
    "transformer_base_range": {
        "learning_rate": RATE,
        "learning_rate_warmup_steps": WARMUPS,
        **ADAM,
        "weight_decay": (0.0, 1e-4, False),
    },
    "transformer_tpu_range": {
        "learning_rate": RATE,
        "learning_rate_warmup_steps": WARMUPS,
        **ADAM,
        "weight_decay": DECAY,
    },
    "transformer_tiny_tpu_range": {"learning_rate": RATE, "weight_decay": DECAY},
}


def _plain(choices):
    return (choices.low, choices.high, choices.log) if isinstance(choices, Interval) else choices


def test_the_ranges_are_tensor2tensors():
    found = {name: {key: _plain(value) for key, value in s.ranges.items()} for name, s in SEARCH_SPACES.items()}
    assert found == EXPECTED
    assert {name: space.hparams_set for name, space in SEARCH_SPACES.items()} == {
        name: name.removesuffix("_range") for name in EXPECTED
    }


@pytest.mark.parametrize("name", SEARCH_SPACES)
def test_samples_are_sets_within_their_ranges(name):
    base = hparams_sets.get(SEARCH_SPACES[name].hparams_set)()
    drawn = [sample(name, seed) for seed in range(40)]
    assert len(set(map(HParams.to_json, drawn))) == 40
    for hparams in drawn:
        assert set(hparams.differences(base)) <= set(EXPECTED[name])
        for key, choices in SEARCH_SPACES[name].ranges.items():
            value = getattr(hparams, key)
            inside = choices.low <= value <= choices.high if isinstance(choices, Interval) else value in choices
            assert inside, (key, value)


def test_a_seed_draws_the_same_again():
    assert sample("transformer_base_range", 3) == sample("transformer_base_range", 3)
    assert sample("transformer_base_range", 3) != sample("transformer_base_range", 4)


def test_a_logarithmic_interval_has_its_median_at_the_geometric_mean():
    generator = random.Random(1)
    assert abs(statistics.median(Interval(0.3, 3.0, log=True).draw(generator) for _ in range(2000)) - 0.9**0.5) < 0.1
    assert abs(statistics.median(Interval(0.0, 2.0).draw(generator) for _ in range(2000)) - 1.0) < 0.1


def test_an_unknown_space_is_named_with_its_neighbours():
    with pytest.raises(
        UsageError, match="no search space is called 'transformer_base_rang'; near names: transformer_b"
    ):
        sample("transformer_base_rang", 0)
