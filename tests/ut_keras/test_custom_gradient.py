"""Custom gradients: those of tf.custom_gradient, and no graph outlives what it was traced for."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops

from tests import tiny_models, traced_graphs
from ut_keras.layers.custom_gradient import custom_gradient, never_differentiated
from ut_keras.layers.embedding import dense_gradient
from ut_keras.layers.linear_recurrence import linear_recurrence
from ut_keras.layers.normalization import layer_norm
from ut_keras.layers.remat import recompute
from ut_keras.losses import TokenCrossEntropy


def tripled(wrap):
    """x squared, whose gradient is said to be three times its own."""

    @wrap
    def square(x):
        return x * x, lambda upstream: 6.0 * x * upstream

    return square


def gradients(square):
    """Returns a function of x: first and second derivative of what five passes of a loop add up."""

    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.while_loop(
                    lambda step, _: step < 5,
                    lambda step, y: (step + 1, y + square(x)),
                    (0, tf.zeros_like(x)),
                    maximum_iterations=5,
                )[1]
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    return run


COMPILED = {
    "eager": lambda function: function,
    "graph": lambda function: tf.function(function, autograph=False),
    "XLA": lambda function: tf.function(function, autograph=False, jit_compile=True),
}


@pytest.mark.parametrize("how", COMPILED)
def test_gradients_are_those_of_tf_custom_gradient(how):
    x = tf.constant([1.0, -2.0, 0.5])
    ours, theirs = (COMPILED[how](gradients(tripled(wrap)))(x) for wrap in (custom_gradient, tf.custom_gradient))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(ours[0], 30.0 * x)


def norm_step(x):
    return layer_norm(x, tf.ones([4]), tf.zeros([4]), 1e-6)


def remat_step(x):
    return recompute(lambda state, step, seed, context: tf.tanh(state), x, tf.constant(0), None, ())


USERS = {
    "layer norm": norm_step,
    "remat": remat_step,
    "linear recurrence": lambda x: linear_recurrence(x, x),
    "embedding": dense_gradient,
}


def traced(function):
    """Traces a loop of `function` and its gradient; returns a weak reference to the graph."""

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda index, _: index < 3, lambda index, x: (index + 1, function(x)), (0, x))[1]
        return tape.gradient(y, x)

    concrete = step.get_concrete_function(tf.TensorSpec([2, 3, 4]))
    assert np.all(np.isfinite(concrete(tf.ones([2, 3, 4]) / 7.0)))
    return weakref.ref(concrete.graph)


@pytest.mark.parametrize("user", USERS)
def test_a_graph_goes_with_what_it_was_traced_for(user):
    before = set(ops.gradient_registry.list())
    graph = traced(USERS[user])
    gc.collect()
    assert graph() is None
    assert set(ops.gradient_registry.list()) <= before


def test_tensorflows_own_custom_gradient_keeps_it():
    """The reason for ours. Where this fails, TensorFlow has mended it, and layers/custom_gradient.py can go."""
    graph = traced(tripled(tf.custom_gradient))
    gc.collect()
    assert graph() is not None


def test_nothing_asks_for_gradients_of_an_update():
    before = set(ops.gradient_registry.list())

    @tf.function
    def step(x):
        with never_differentiated():
            return tripled(tf.custom_gradient)(x)

    graph = weakref.ref(step.get_concrete_function(tf.TensorSpec([3])).graph)
    del step
    gc.collect()
    assert graph() is None
    assert set(ops.gradient_registry.list()) <= before


@pytest.mark.slow  # builds and compiles a model for three purposes
def test_a_notebooks_fit_predict_and_generate_leave_no_graph():
    with traced_graphs.gone():
        model, batch = tiny_models.make("seq2seq", halting="frozen", remat=True), tiny_models.rows("seq2seq")
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss=TokenCrossEntropy())
        model.fit(batch, batch["targets"], verbose=0)
        model.predict(batch, verbose=0)
        model.generate(batch["inputs"], max_length=3)
        del model
