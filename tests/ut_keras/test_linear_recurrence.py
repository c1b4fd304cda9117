"""The linear recurrence against a loop in numpy; its gradient, by itself and inside of a loop over depth."""

import numpy as np
import pytest
import tensorflow as tf

from ut_keras.layers.linear_recurrence import linear_recurrence
from ut_keras.layers.remat import recompute


def case(rng, length, batch=2, size=3):
    """Returns factors in (0, 1), terms and an initial state."""
    factors = rng.uniform(0.05, 0.999, size=[batch, length, size]).astype("float32")
    return factors, rng.normal(size=factors.shape).astype("float32"), rng.normal(size=[batch, size]).astype("float32")


def states_of(factors, terms, initial):
    """The definition, position by position, in float64."""
    state, states = np.asarray(initial, float), []
    for index in range(factors.shape[1]):
        state = factors[:, index].astype(float) * state + terms[:, index]
        states.append(state)
    return np.stack(states, axis=1)


def gradients_of(factors, terms, initial, upstream):
    """Gradients of sum(upstream * states) with respect to factors, terms and initial, from behind."""
    states = states_of(factors, terms, initial)
    reach = np.zeros(states[:, 0].shape)
    to_factors, to_terms = np.zeros(states.shape), np.zeros(states.shape)
    for index in reversed(range(factors.shape[1])):
        reach = reach + upstream[:, index]
        to_terms[:, index] = reach
        to_factors[:, index] = reach * (states[:, index - 1] if index else initial)
        reach = reach * factors[:, index]
    return to_factors, to_terms, reach


def test_three_positions_by_hand():
    factors, terms = tf.constant([[[0.5], [0.5], [0.25]]]), tf.constant([[[4.0], [2.0], [1.0]]])
    assert linear_recurrence(factors, terms).numpy().ravel().tolist() == [4.0, 4.0, 2.0]
    assert linear_recurrence(factors, terms, tf.constant([[8.0]])).numpy().ravel().tolist() == [8.0, 6.0, 2.5]


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 32, 100, 533])
@pytest.mark.parametrize("starts", [False, True])
def test_states_and_gradients_equal_numpy(rng, length, starts):
    factors, terms, initial = case(rng, length)
    if not starts:
        initial[:] = 0
    upstream = rng.normal(size=factors.shape).astype("float32")
    tensors = [tf.constant(part) for part in (factors, terms, initial)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        states = linear_recurrence(*tensors[: 3 if starts else 2])
        loss = tf.reduce_sum(states * upstream)
    np.testing.assert_allclose(states, states_of(factors, terms, initial), rtol=1e-5, atol=1e-5)
    expected = gradients_of(factors, terms, initial, upstream)
    for ours, theirs in zip(tape.gradient(loss, tensors)[: 3 if starts else 2], expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_factors_of_zero_and_one_are_no_special_case():
    factors = tf.repeat(tf.constant([[[1.0, 0.0]]]), 40, axis=1)
    states = linear_recurrence(factors, tf.ones([1, 40, 2]))
    np.testing.assert_array_equal(states[0, :, 0], np.arange(1, 41))
    np.testing.assert_array_equal(states[0, :, 1], np.ones(40))


def through_a_loop(remat):
    """A loss and its gradients after three steps in a tf.while_loop, as a recurrence over depth takes them."""

    def transform(state, step, seed, context):
        factors = tf.sigmoid(context + tf.cast(step, tf.float32))
        return linear_recurrence(factors, tf.tanh(state), state[:, 0])

    def run(x, gates):
        def body(step, state):
            arguments = (state, step, None, gates)
            return step + 1, recompute(transform, *arguments) if remat else transform(*arguments)

        def runs_on(step, state):
            return step < 3

        with tf.GradientTape() as tape:
            tape.watch([x, gates])
            state = tf.while_loop(runs_on, body, (tf.constant(0), x), maximum_iterations=5)[1]
            loss = tf.reduce_sum(state**2)
        return [state, *tape.gradient(loss, [x, gates])]

    return run


def assert_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("remat", [False, True])
def test_gradients_pass_a_loop_over_depth(rng, remat):
    x, gates, _ = (tf.constant(part) for part in case(rng, 20))
    expected = through_a_loop(False)(x, gates)  # eager: no loop in a graph
    specs = [tf.TensorSpec([None, None, 3])] * 2
    assert_same(tf.function(through_a_loop(remat), input_signature=specs)(x, gates), expected)


@pytest.mark.slow
@pytest.mark.parametrize("remat", [False, True])
def test_gradients_pass_a_loop_over_depth_under_xla(rng, remat):
    x, gates, _ = (tf.constant(part) for part in case(rng, 20))
    expected = through_a_loop(False)(x, gates)
    specs = [tf.TensorSpec([None, None, 3])] * 2
    compiled = tf.function(through_a_loop(remat), input_signature=specs, jit_compile=True)
    assert_same(compiled(x, gates), expected)


def test_little_is_kept_for_the_gradient():
    """Factors and states, not what the rounds of a scan make on their way."""

    def step(factors, terms):
        with tf.GradientTape() as tape:
            tape.watch([factors, terms])
            loss = tf.reduce_sum(linear_recurrence(factors, terms))
        return tape.gradient(loss, [factors, terms])

    specs = [tf.TensorSpec([None, None, 3])] * 2
    graph = tf.function(step, input_signature=specs).get_concrete_function().graph.as_graph_def()
    nodes = [node.op for function in graph.library.function for node in function.node_def]
    assert not any(op.startswith("TensorList") for op in nodes)
