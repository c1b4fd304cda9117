"""ACT's accounting: tensor2tensor's table of golden values, every form over steps, and the unit itself."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references
from ut_keras.layers import halting
from ut_keras.layers.halting import AdaptiveComputationTime, HaltingState


class TestHaltingUnit(layer_checks.LayerChecks):
    weight_count = 4 + 1

    def make(self, **kwargs):
        return AdaptiveComputationTime("global", **kwargs)

    def inputs(self, rng):
        mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
        return {"state": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": mask}


# p of steps 0, 1, ... (the last repeats), step limit, steps, remainder, effective weights of `basic`, and the sums
# of effective weights of `basic` and `accumulated`: values computed from T2T's rules, epsilon 0.01, where a
# position that is cut off at the limit gets no remainder.
TABLE = [
    ([0.731059], 12, 2, 0.268941, [0.5344, 0.2689], 0.8034, 1.0),
    ([0.3], 12, 4, 0.1, [0.1323, 0.189, 0.27, 0.1], 0.6913, 1.0),
    ([0.5], 12, 2, 0.5, [0.25, 0.5], 0.75, 1.0),
    ([0.995], 12, 1, 1.0, [1.0], 1.0, 1.0),
    ([0.1, 0.5, 0.2, 0.9], 12, 4, 0.2, [0.032, 0.32, 0.16, 0.2], 0.712, 1.0),
    ([0.25], 3, 3, 0.0, [0.1406, 0.1875, 0.25], 0.5781, 0.75),
    ([0.05], 12, 12, 0.0, None, 0.4596, 0.60),
]


def run(form, probabilities, max_steps, **options):
    """Runs one position whose new state at step n is the n-th unit vector: the output is the effective weights."""
    layer = AdaptiveComputationTime(form, **options)
    state = layer.initial_state(tf.constant([[True]]))
    output = tf.zeros([1, 1, max_steps])
    for step in range(max_steps):
        if not layer.runs_on(state):
            break
        p = tf.constant([[probabilities[min(step, len(probabilities) - 1)]]])
        state, weight, _ = layer.step(state, p, tf.constant(step + 1 >= max_steps))
        output = layer.mix(output, tf.one_hot([[step]], max_steps), weight)
    return state, output[0, 0].numpy()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_accounting_equals_the_table_of_golden_values(row):
    probabilities, max_steps, steps, remainder, effective, basic_sum, accumulated_sum = row
    for form, total in (("basic", basic_sum), ("accumulated", accumulated_sum)):
        state, weights = run(form, probabilities, max_steps, remainder_at_limit=False)
        assert float(state.ponder_times[0, 0]) == steps
        np.testing.assert_allclose(state.remainders[0, 0], remainder, atol=1e-6)
        np.testing.assert_allclose(weights.sum(), total, atol=5e-5)
        if form == "basic" and effective:
            np.testing.assert_allclose(weights[: len(effective)], effective, atol=5e-5)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}")
@pytest.mark.parametrize("form", ["accumulated", "frozen"])
def test_weighted_sums_have_weights_that_sum_to_one_also_at_the_limit(form, row):
    state, weights = run(form, row[0], row[1])
    np.testing.assert_allclose(weights.sum(), 1, atol=1e-6)
    expected, steps, remainder = references.act_weights(row[0], row[1], 0.99, pays=True)
    np.testing.assert_allclose(weights[: len(expected)], expected, atol=1e-6)
    assert float(state.ponder_times[0, 0]) == steps
    np.testing.assert_allclose(state.remainders[0, 0], remainder, atol=1e-6)


@pytest.mark.parametrize("form", ["basic", "global", "random"])
def test_interpolating_forms_get_no_remainder_at_the_limit(form):
    state, weights = run(form, [0.25], 3)
    assert float(state.remainders[0, 0]) == 0
    np.testing.assert_allclose(weights, [0.25 * 0.75**2, 0.25 * 0.75, 0.25], atol=1e-6)


def test_random_probabilities_equal_the_reference(rng):
    for pays in (False, True):
        p = rng.uniform(0, 0.6, [6, 3, 4]).astype("float32")
        state = AdaptiveComputationTime("accumulated").initial_state(tf.ones([3, 4], tf.bool))
        weights = []
        for step in range(6):
            limit = tf.constant(pays and step == 5)
            state, weight, _ = halting.halting_step(state, tf.constant(p[step]), 0.99, limit)
            weights.append(weight)
        for b, i in np.ndindex(3, 4):
            expected, steps, remainder = references.act_weights(p[:, b, i], 6, 0.99, pays)
            ours = [float(weight[b, i]) for weight in weights]
            np.testing.assert_allclose(ours, expected + [0] * (6 - steps), atol=1e-6)
            assert float(state.ponder_times[b, i]) == steps
            np.testing.assert_allclose(state.remainders[b, i], remainder, atol=1e-6)


def test_a_position_that_has_halted_has_weight_zero_and_does_not_run():
    state = HaltingState(*(tf.constant([[value, other]]) for value, other in ((1.0, 0.4), (0.3, 0.0), (2.0, 2.0))))
    after, weight, running = halting.halting_step(state, tf.constant([[0.5, 0.2]]), 0.99, False)
    np.testing.assert_allclose(weight, [[0.0, 0.2]], atol=1e-7)
    assert running.numpy().tolist() == [[False, True]]
    np.testing.assert_allclose(after.probability, [[1.0, 0.6]], atol=1e-6)
    np.testing.assert_allclose(after.remainders, [[0.3, 0.0]], atol=1e-7)
    assert after.ponder_times.numpy().tolist() == [[2.0, 3.0]]


def test_small_probabilities_add_up_in_every_precision():
    """In bfloat16 a sum of 0.004 sticks before it reaches the threshold."""
    layer = AdaptiveComputationTime("accumulated", dtype="mixed_bfloat16")
    state = layer.initial_state(tf.constant([[True]]))
    for _ in range(260):
        state, _, _ = layer.step(state, tf.constant([[0.004]]), tf.constant(False))
    assert float(state.ponder_times[0, 0]) == 248
    assert state.probability.dtype == tf.float32


def test_padding_starts_halted_unless_it_counts():
    mask = tf.constant([[True, False]])
    assert AdaptiveComputationTime("basic").initial_state(mask).probability.numpy().tolist() == [[0, 1]]
    counting = AdaptiveComputationTime("basic", count_padding=True)
    assert counting.initial_state(mask).probability.numpy().tolist() == [[0, 0]]
    assert counting.counted(mask).numpy().tolist() == [[True, True]]


def unit(form, rng, **options):
    """A layer with random weights, states [2, 4, 3], a mask and each position's own probability by numpy."""
    layer = AdaptiveComputationTime(form, **options)
    layer.build((None, None, 3))
    kernel = rng.normal(size=[3, 1]).astype("float32")
    layer.set_weights([kernel, np.array([-0.5], "float32")])
    states = rng.normal(size=[2, 4, 3]).astype("float32")
    mask = np.array([[True] * 4, [True, True, False, False]])
    own = 1 / (1 + np.exp(-(states @ kernel[:, 0] - 0.5)))
    return layer, tf.constant(states), tf.constant(mask), own


def probability(layer, states, mask, causal=False):
    return layer.probability(states, layer.prepare(), mask, causal, None, tf.constant(0)).numpy()


@pytest.mark.parametrize("form", ["basic", "accumulated", "frozen"])
def test_each_position_has_a_probability_of_its_own(rng, form):
    layer, states, mask, own = unit(form, rng)
    np.testing.assert_allclose(probability(layer, states, mask), own, rtol=1e-5)
    np.testing.assert_allclose(layer(states, mask), own, rtol=1e-5)


def test_global_is_the_mean_over_real_positions_and_over_the_prefix_in_a_decoder(rng):
    layer, states, mask, own = unit("global", rng)
    together = probability(layer, states, mask)
    np.testing.assert_allclose(together[0], own[0].mean(), rtol=1e-5)
    np.testing.assert_allclose(together[1, :2], own[1, :2].mean(), rtol=1e-5)
    prefix = probability(layer, states, mask, causal=True)
    np.testing.assert_allclose(prefix[0], [own[0, : i + 1].mean() for i in range(4)], rtol=1e-5)
    np.testing.assert_allclose(prefix[1, :2], [own[1, 0], own[1, :2].mean()], rtol=1e-5)


def test_global_over_all_with_padding_is_tensor2tensors_mean(rng):
    layer, states, mask, own = unit("global", rng, count_padding=True, global_over="all")
    for causal in (False, True):
        expected = np.repeat(own.mean(axis=1, keepdims=True), 4, axis=1)
        np.testing.assert_allclose(probability(layer, states, mask, causal), expected, rtol=1e-5)


def test_random_has_no_weights_and_is_uniform_noise_of_its_seed_and_step():
    layer = AdaptiveComputationTime("random")
    layer.build((None, None, 3))
    assert layer.weights == []
    states, mask = tf.zeros([50, 40, 3]), tf.ones([50, 40], tf.bool)

    def draw(seed, step):
        return layer.probability(states, layer.prepare(), mask, False, seed, tf.constant(step)).numpy()

    seed = tf.constant([1, 2])
    np.testing.assert_array_equal(draw(seed, 0), draw(seed, 0))
    trained = draw(seed, 0)
    assert 0 <= trained.min() < 0.01
    assert 0.99 < trained.max() < 1
    assert abs(trained.mean() - 0.5) < 0.02
    assert len(np.unique(trained[:, 0])) == 50
    inference = draw(None, 0)
    assert np.all(inference == inference[0])
    assert np.abs(inference - draw(None, 1)).max() > 0.5


def test_initial_bias_is_the_given_one_and_weights_stay_float32():
    layer = AdaptiveComputationTime("basic", bias_initializer=-3.0, dtype="mixed_float16")
    layer.build((None, None, 3))
    np.testing.assert_array_equal(layer.weights[1].numpy(), [-3.0])
    assert {weight.dtype for weight in layer.weights} == {"float32"}


def test_frozen_keeps_what_did_not_run_and_the_others_go_on():
    old, new, running = tf.zeros([1, 2, 3]), tf.ones([1, 2, 3]), tf.constant([[True, False]])
    assert AdaptiveComputationTime("frozen").keep(old, new, running).numpy()[0, :, 0].tolist() == [1, 0]
    assert AdaptiveComputationTime("accumulated").keep(old, new, running) is new


def test_configuration_round_trip():
    options = {
        "form": "global",
        "epsilon": 0.2,
        "bias_initializer": -2.0,
        "remainder_at_limit": False,
        "count_padding": True,
        "global_over": "all",
    }
    copy = halting.make_halting(keras.saving.serialize_keras_object(AdaptiveComputationTime(**options)))
    assert {name: copy.get_config()[name] for name in options} == options


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="halting form 'gobal' is not one of none, basic"):
        halting.make_halting("gobal")
    assert halting.make_halting("none") is None
    assert halting.make_halting(None) is None
