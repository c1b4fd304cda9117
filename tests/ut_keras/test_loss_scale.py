"""The loss scale: what a skipped update leaves alone, and the bounds that Keras' own scale has not."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from ut_keras.loss_scale import BoundedLossScaleOptimizer

NAN, INFINITE = float("nan"), float("inf")


def built(**options):
    """Returns (optimizer around momentum and moving averages, weight, compiled apply of one gradient)."""
    inner = keras.optimizers.SGD(0.5, momentum=0.9, use_ema=True, ema_momentum=0.5)
    optimizer = BoundedLossScaleOptimizer(inner, **options)
    weight = keras.Variable([1.0, 2.0])
    optimizer.build([weight])
    apply = tf.function(lambda gradient: optimizer.apply([gradient], [weight]))
    return optimizer, weight, lambda *gradient: apply(tf.constant(gradient))


@pytest.mark.parametrize("bad", [NAN, INFINITE, -INFINITE])
def test_one_number_that_is_not_finite_leaves_weights_slots_averages_and_iterations_as_they_were(bad):
    optimizer, weight, apply = built()
    apply(3.0, 4.0)
    before = [variable.numpy() for variable in (weight, *optimizer.inner_optimizer.variables)]
    apply(3.0, bad)
    after = [variable.numpy() for variable in (weight, *optimizer.inner_optimizer.variables)]
    assert len(before) == 5
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert int(optimizer.iterations) == 1
    assert float(optimizer.dynamic_scale) == 2.0**14
    apply(3.0, 4.0)
    assert int(optimizer.iterations) == 2


def test_the_loss_is_multiplied_and_the_gradient_divided_by_the_scale():
    optimizer, weight, apply = built()
    assert float(optimizer.scale_loss(2.0)) == 2.0**16
    apply(2.0**15, 0.0)
    np.testing.assert_array_equal(weight, [0.5, 2.0])


def test_gradients_that_are_never_finite_do_not_bring_the_scale_to_zero():
    optimizer, weight, apply = built(initial_scale=4.0)
    scales = []
    for _ in range(5):
        apply(NAN, 0.0)
        scales.append(float(optimizer.dynamic_scale))
    assert scales == [2.0, 1.0, 1.0, 1.0, 1.0]
    apply(1.0, 0.0)
    np.testing.assert_array_equal(weight, [0.5, 2.0])


def test_gradients_that_never_overflow_do_not_bring_the_scale_to_infinity():
    optimizer, _, apply = built(initial_scale=2.0, dynamic_growth_steps=2, maximum_scale=8.0)
    scales = []
    for _ in range(8):
        apply(0.0, 0.0)
        scales.append(float(optimizer.dynamic_scale))
    assert scales == [2.0, 4.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0]


def test_with_both_bounds_one_the_scale_stays_and_updates_are_those_without_it(rng):
    optimizer, weight, apply = built(initial_scale=1.0, maximum_scale=1.0, dynamic_growth_steps=2)
    plain, other = keras.optimizers.SGD(0.5, momentum=0.9), keras.Variable([1.0, 2.0])
    for gradient in rng.normal(size=[7, 2]).astype("float32"):
        apply(*gradient)
        plain.apply([gradient], [other])
        apply(NAN, 0.0)
        assert float(optimizer.dynamic_scale) == 1.0
    np.testing.assert_array_equal(weight, other)
    assert np.abs(weight.numpy() - [1.0, 2.0]).max() > 0.1
    assert not optimizer.moves
    assert built()[0].moves


def test_bounds_survive_serialisation():
    optimizer, _, _ = built(initial_scale=4.0, dynamic_growth_steps=9, minimum_scale=2.0, maximum_scale=8.0)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(copy, BoundedLossScaleOptimizer)
    assert copy.get_config() == optimizer.get_config()
    assert (copy.initial_scale, copy.dynamic_growth_steps, copy.minimum_scale, copy.maximum_scale) == (4, 9, 2, 8)
