"""Rematerialisation: the same values and gradients, fewer tensors kept."""

import numpy as np
import pytest
import tensorflow as tf

from ut_keras.layers.recurrence import UniversalRecurrence
from ut_keras.layers.remat import recompute

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
DROPOUTS = {"input_dropout": 0.2, "residual_dropout": 0.2, "attention_dropout": 0.2, "relu_dropout": 0.2}


def test_gradients_reach_every_float_argument_and_pass_over_the_others():
    def function(state, step, seed, context):
        kept = tf.where(context["mask"], state, 0.0)
        return kept * tf.cast(step, tf.float32), tf.tanh(state * context["weight"])

    state, weight = tf.constant([0.5, -1.0, 2.0]), tf.constant([0.1, 0.2, 0.3])
    arguments = (tf.constant(3), None, {"mask": tf.constant([True, False, True]), "weight": weight, "none": None})
    results = []
    for call in (function, lambda *arguments: recompute(function, *arguments)):
        with tf.GradientTape() as tape:
            tape.watch([state, weight])
            one, other = call(state, *arguments)
            loss = tf.reduce_sum(one**2) + tf.reduce_sum(other)
        results.append([one, other, *tape.gradient(loss, [state, weight])])
    for plain, remat in zip(*results):
        np.testing.assert_allclose(plain, remat, rtol=1e-6)


def pair(form, **options):
    """A recurrence without and one with remat, with the same weights."""
    sizes = {"max_steps": 4, "num_heads": 2, "filter_size": 8, "halting": form}
    layers = [UniversalRecurrence(remat=remat, **sizes, **options) for remat in (False, True)]
    for layer in layers:
        layer.build((None, None, 4))
        layer.set_weights(layers[0].get_weights())
    return layers


def training_step(layer, jit_compile=False):
    """A compiled step: output and gradients."""

    def step(x, mask, seed):
        with tf.GradientTape() as tape:
            output, ponder = layer(x, mask, seed=seed)
            loss = tf.reduce_sum(output * tf.cos(tf.range(4.0))) + tf.reduce_sum(ponder.remainders)
        gradients = tape.gradient(loss, [variable.value for variable in layer.trainable_variables])
        return [output, *gradients]

    specs = [tf.TensorSpec([2, 5, 4]), tf.TensorSpec([2, 5], tf.bool), tf.TensorSpec([2], tf.int32)]
    return tf.function(step, jit_compile=jit_compile).get_concrete_function(*specs)


def kept_tensors(step):
    """The number of tensors of which the forward loop keeps one per step for the backward loop."""
    library = step.graph.as_graph_def().library.function
    return sum(node.op == "TensorListPushBack" for function in library for node in function.node_def)


def assert_equal_steps(steps, rng):
    x, mask, seed = tf.constant(rng.normal(size=[2, 5, 4]), tf.float32), tf.constant(MASK), tf.constant([1, 2])
    plain, remat = (step(x, mask, seed) for step in steps)
    assert np.abs(plain[1]).max() > 0
    for one, other in zip(plain, remat, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("form", ["none", pytest.param("frozen", marks=pytest.mark.slow)])
def test_values_and_gradients_are_the_same_with_dropout_and_little_is_kept(rng, form):
    """With remat only what goes from step to step is kept, no tensor of the inner or of the attention size."""
    steps = [training_step(layer) for layer in pair(form, **DROPOUTS)]
    assert_equal_steps(steps, rng)
    plain, remat = (kept_tensors(step) for step in steps)
    assert plain > 2 * remat
    assert remat < 15


@pytest.mark.slow
@pytest.mark.parametrize("form", ["none", "frozen"])
def test_values_and_gradients_are_the_same_under_xla(rng, form):
    assert_equal_steps([training_step(layer, jit_compile=True) for layer in pair(form, **DROPOUTS)], rng)
