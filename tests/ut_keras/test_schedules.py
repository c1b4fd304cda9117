"""Learning-rate schedules against tensor2tensor's numbers and a numpy form of each factor."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files
from ut_keras import schedules
from ut_keras.errors import UsageError
from ut_keras.hparams import HParams

GOLDEN = golden_files.load("lr_schedules")


def golden_schedule(name):
    config = dict(GOLDEN.meta[name])
    config.pop("learning_rate_decay_scheme", None)
    return schedules.LearningRateSchedule(**config)


@pytest.mark.parametrize("name", sorted(GOLDEN.meta))
def test_rates_equal_tensor2tensor(name):
    schedule = golden_schedule(name)
    rates = [float(schedule(step)) for step in GOLDEN["steps"]]
    np.testing.assert_allclose(rates, GOLDEN[f"lr/{name}"], rtol=1e-5)


def test_legacy_with_adam_in_lower_case_is_500_times_smaller():
    large = golden_schedule("legacy_noam")
    small = schedules.LearningRateSchedule(**{**large.get_config(), "optimizer": "adam"})
    np.testing.assert_allclose(small(100), 0.002 * large(100), rtol=1e-6)


STEPS = np.array([0, 1, 9, 10, 11, 35, 60, 99, 100, 250])
W, N, T = 10, 50, 100  # warm-up, decay and training steps


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        ("linear_warmup", np.minimum(1, STEPS / W)),
        ("rsqrt_decay", np.maximum(STEPS, W) ** -0.5),
        ("rsqrt_normalized_decay", (W / np.maximum(STEPS, W)) ** 0.5),
        ("rsqrt_hidden_size", np.full(len(STEPS), 0.125)),
        ("linear_decay", np.clip((T - STEPS) / N, 0, 1)),
        ("exp_decay", 0.5 ** (np.maximum(0, STEPS - W) / N)),
        ("cosdecay", np.where(STEPS <= W, 1, 0.5 + 0.5 * np.cos(np.pi * STEPS / N))),
        ("single_cycle_cos_decay", 0.5 + 0.5 * np.cos(np.pi * np.maximum(0, STEPS - W) / (T - W))),
        ("multi_cycle_cos_decay", 0.5 + 0.5 * np.cos(np.pi * np.maximum(0, STEPS - W) / N)),
    ],
)
def test_factor_equals_numpy(factor, expected):
    schedule = schedules.LearningRateSchedule(
        f"constant * {factor}",
        hidden_size=64,
        learning_rate_constant=3.0,
        learning_rate_warmup_steps=W,
        learning_rate_decay_steps=N,
        learning_rate_decay_rate=0.5,
        train_steps=T,
    )
    np.testing.assert_allclose([float(schedule(step)) for step in STEPS], 3.0 * expected, rtol=1e-5, atol=1e-6)


def test_staircase_decays_in_whole_steps():
    schedule = schedules.LearningRateSchedule(
        "exp_decay",
        learning_rate_warmup_steps=0,
        learning_rate_decay_steps=10,
        learning_rate_decay_rate=0.5,
        learning_rate_decay_staircase=True,
    )
    assert [float(schedule(step)) for step in (9, 10, 19, 20)] == [1.0, 0.5, 0.5, 0.25]


def test_every_factor_is_finite_at_step_zero_without_warmup():
    names = "constant*linear_warmup*rsqrt_decay*rsqrt_normalized_decay*linear_decay*exp_decay*cosdecay*legacy"
    schedule = schedules.LearningRateSchedule(names, learning_rate_warmup_steps=0)
    assert np.isfinite(schedule(0))
    assert float(schedules.LearningRateSchedule("linear_warmup", learning_rate_warmup_steps=0)(0)) == 1.0


@pytest.mark.parametrize("step", [8000, tf.constant(8000, tf.int64), tf.constant(8000, tf.int32), tf.constant(8e3)])
def test_step_may_have_any_number_type(step):
    rate = schedules.LearningRateSchedule()(step)
    assert rate.dtype == tf.float32
    np.testing.assert_allclose(rate, 9.882118e-4, rtol=1e-5)


def test_hparams_give_the_schedule():
    schedule = schedules.from_hparams(HParams(hidden_size=64, learning_rate_warmup_steps=16, train_steps=77))
    assert (schedule.hidden_size, schedule.learning_rate_warmup_steps, schedule.train_steps) == (64, 16, 77)
    np.testing.assert_allclose(schedule(16), 2.0 / 4 / 8, rtol=1e-6)


def test_schedule_survives_serialisation():
    schedule = schedules.LearningRateSchedule("legacy*exp_decay", hidden_size=8, learning_rate_decay_rate=0.9)
    copy = keras.optimizers.schedules.deserialize(keras.optimizers.schedules.serialize(schedule))
    assert copy.get_config() == schedule.get_config()
    assert float(copy(1234)) == float(schedule(1234))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("constant*linear_warmpu", "no factor 'linear_warmpu'; near names: linear_warmup"),
        ("constant**rsqrt_decay", "no factor ''; factors: constant, "),
        ("", "no factor ''; factors: constant, "),
    ],
)
def test_unknown_factor_is_refused_at_construction(text, message):
    with pytest.raises(UsageError, match=message):
        schedules.LearningRateSchedule(text)


def test_single_cycle_needs_steps_after_the_warmup():
    with pytest.raises(UsageError, match="train_steps=10 leaves single_cycle_cos_decay nothing"):
        schedules.LearningRateSchedule("single_cycle_cos_decay", train_steps=10, learning_rate_warmup_steps=10)


def test_a_short_run_reaches_its_rate_and_ends_at_zero():
    short = {"learning_rate_warmup_steps": 10, "learning_rate_decay_steps": 2000, "learning_rate_constant": 1.0}
    schedule = schedules.LearningRateSchedule("constant*linear_warmup*linear_decay", train_steps=60, **short)
    assert [round(float(schedule(step)), 3) for step in (0, 5, 10, 35, 60)] == [0.0, 0.5, 1.0, 0.5, 0.0]
