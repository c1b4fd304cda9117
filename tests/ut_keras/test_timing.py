"""The coordinate signal of each step, and the battery."""

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references
from ut_keras.layers.timing import TimingSignal

X = np.random.default_rng(1).normal(size=[2, 5, 6])


class TestTimingSignal(layer_checks.LayerChecks):
    weight_count = 4 * 12 + 24 * 6
    unpadded = ("lengths",)

    def make(self, **kwargs):
        return TimingSignal(4, step="learned", combine="concat", shift_by_step=True, layout="t2t", **kwargs)

    def inputs(self, rng):
        positions = np.array([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]], "int32")
        return {"x": X.astype("float32"), "positions": positions, "lengths": np.array([5, 3], "int32")}

    def call(self, layer, inputs):
        return layer(inputs["x"], step=2, positions=inputs["positions"], lengths=inputs["lengths"])


def signal_of(layer, step, positions=((0, 1, 2, 3, 4),), **options):
    x = tf.constant(X, tf.float32)
    return np.array(layer(x, tf.constant(step), tf.constant(positions), **options)) - X


@pytest.mark.parametrize("layout", ["paper", "t2t"])
def test_position_and_step_sinusoids_are_added(layout):
    layer = TimingSignal(3, layout=layout)
    for step in range(3):
        expected = references.sinusoids(range(5), 6, layout) + references.sinusoids([step], 6, layout)
        np.testing.assert_allclose(signal_of(layer, step), [expected, expected], atol=1e-5)


def test_positions_are_read_per_row():
    layer = TimingSignal(3, step="none")
    rows = signal_of(layer, 1, [[0, 1, 2, 3, 4], [9, 8, 7, 6, 5]])
    expected = [references.sinusoids(range(5), 6, "paper"), references.sinusoids([9, 8, 7, 6, 5], 6, "paper")]
    np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_learned_step_vector_is_scaled_by_the_root_of_its_width():
    layer = TimingSignal(3, step="learned", position=False)
    rows = signal_of(layer, 2)
    np.testing.assert_allclose(rows, np.broadcast_to(layer.weights[0].numpy()[2] * 6**0.5, [2, 5, 6]), atol=1e-5)


def test_concatenation_is_state_position_step_projected():
    layer = TimingSignal(4, layout="t2t", combine="concat")
    ours = signal_of(layer, 1) + X
    step = np.broadcast_to(references.sinusoids([1], 12, "t2t"), [5, 12])
    for row, x in zip(ours, X):
        wide = np.concatenate([x, references.sinusoids(range(5), 6, "t2t"), step], axis=1)
        np.testing.assert_allclose(row, wide @ layer.weights[0].numpy(), rtol=1e-4, atol=1e-5)


def test_start_index_step_shifts_positions_by_the_share_of_the_length_done():
    layer = TimingSignal(4, layout="t2t", step="none", shift_by_step=True)
    for step, shifts in ((0, (0, 0)), (2, (2, 1)), (3, (3, 2))):
        rows = signal_of(layer, step, lengths=tf.constant([5, 3]))
        expected = [references.sinusoids(range(shift, shift + 5), 6, "t2t") for shift in shifts]
        np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_start_index_step_measures_in_the_steps_of_the_call():
    layer = TimingSignal(4, layout="t2t", step="none", shift_by_step=True)
    rows = signal_of(layer, 3, lengths=tf.constant([5, 5]), steps=8)
    np.testing.assert_allclose(rows[0], references.sinusoids(range(1, 6), 6, "t2t"), atol=1e-5)


def test_without_signals_the_state_is_unchanged():
    for combine in ("add", "concat"):
        layer = TimingSignal(3, position=False, step="none", combine=combine)
        np.testing.assert_allclose(signal_of(layer, 1), 0 * X, atol=1e-6)
        assert layer.weights == []


def test_turning_the_step_signal_off_changes_the_outcome():
    assert np.abs(signal_of(TimingSignal(3), 1) - signal_of(TimingSignal(3, step="none"), 1)).max() > 0.5


def test_sinusoid_steps_run_deeper_than_built_and_a_learned_table_refuses():
    deeper = signal_of(TimingSignal(3, layout="t2t"), 7, steps=8) - signal_of(TimingSignal(8, layout="t2t"), 7)
    np.testing.assert_allclose(deeper, 0 * X, atol=1e-6)
    with pytest.raises(ValueError, match="max_steps=8: the learned step signal has 3 rows.*sinusoid"):
        signal_of(TimingSignal(3, step="learned"), 7, steps=8)


def test_signals_are_computed_in_float32_and_cast():
    layer = TimingSignal(3, layout="t2t", step="none", dtype="mixed_float16")
    rows = layer(tf.zeros([1, 2, 6], tf.float16), step=0, positions=tf.constant([[4999, 5000]]))
    assert rows.dtype == tf.float16
    np.testing.assert_allclose(rows[0], references.sinusoids([4999, 5000], 6, "t2t"), atol=2e-3)


@pytest.mark.parametrize(("name", "value"), [("layout", "T2T"), ("step", "cosine"), ("combine", "sum")])
def test_an_unknown_option_is_refused(name, value):
    with pytest.raises(ValueError, match=f"signal {name}='{value}' is not one of"):
        TimingSignal(3, **{name: value})
