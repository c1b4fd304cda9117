"""Position and step signals against the formulas and against tensor2tensor."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files, references
from ut_keras.layers import signals

GOLDEN = golden_files.load("timing_signals")


@pytest.mark.parametrize("layout", ["paper", "t2t"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7, 16])
def test_sinusoids_equal_the_formula(layout, channels):
    positions = [0, 1, 2, 5, 40, 399]
    ours = signals.sinusoids(tf.constant(positions), channels, layout)
    assert ours.shape == (6, channels)
    np.testing.assert_allclose(ours, references.sinusoids(positions, channels, layout), atol=5e-5)


def test_paper_layout_interleaves_and_counts_from_one():
    row = signals.sinusoids(tf.constant(0), 4, "paper")
    np.testing.assert_allclose(row, [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)], atol=1e-6)


def test_t2t_layout_is_in_halves_and_counts_from_zero():
    np.testing.assert_array_equal(signals.sinusoids(tf.constant(0), 5, "t2t"), [0, 0, 1, 1, 0])
    row = signals.sinusoids(tf.constant(2), 4, "t2t")
    np.testing.assert_allclose(row, [np.sin(2), np.sin(2e-4), np.cos(2), np.cos(2e-4)], atol=1e-6)


@pytest.mark.parametrize("name", [name for name in GOLDEN.keys() if name.startswith("timing/")])  # noqa: SIM118
def test_positions_equal_tensor2tensor(name):
    length, channels, start = (int(number) for number in re.findall(r"\d+", name))
    ours = signals.sinusoids(tf.range(length)[None] + start, channels, "t2t")
    np.testing.assert_allclose(ours, GOLDEN[name], rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("name", [name for name in GOLDEN.keys() if name.startswith("step_sinusoid/")])  # noqa: SIM118
def test_steps_equal_tensor2tensor(name):
    step, _, channels = (int(number) for number in re.findall(r"\d+", name))
    ours = signals.sinusoids(tf.constant([[step]]), channels, "t2t")
    np.testing.assert_allclose(ours, GOLDEN[name], rtol=1e-4, atol=5e-5)


def test_large_positions_stay_finite_and_exact_enough():
    positions = [0, 255, 2048, 5000]
    for layout in signals.LAYOUTS:
        ours = signals.sinusoids(tf.constant(positions), 6, layout)
        assert ours.dtype == tf.float32
        np.testing.assert_allclose(ours, references.sinusoids(positions, 6, layout), atol=5e-4)


def test_positions_are_counted_from_the_start_or_back_from_the_last_real_one():
    mask = tf.constant([[True, True, True, False], [True, False, False, False], [False] * 4])
    assert signals.positions_of(mask).numpy().tolist() == [[0, 1, 2, 3]]
    assert signals.positions_of(mask, "end").numpy().tolist() == [[2, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_step_shift_is_the_whole_part_of_length_times_step_over_steps():
    lengths = tf.constant([7, 3, 0])
    shifts = [signals.step_shift(lengths, step, 4).numpy()[:, 0].tolist() for step in range(4)]
    assert shifts == [[0, 0, 0], [1, 0, 0], [3, 1, 0], [5, 2, 0]]
