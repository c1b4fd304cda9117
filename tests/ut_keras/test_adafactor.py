"""Adafactor against a numpy form of tensor2tensor's, and against Keras' where the two are the same."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from ut_keras.adafactor import Adafactor

RATE = 0.1


def root_mean_square(x):
    return np.sqrt(np.mean(np.square(x)))


def numpy_adafactor(weight, gradients, **options):
    """tensor2tensor's update in float64, one statement per equation; returns the weight after each gradient."""
    known = {"beta_1": 0.0, "beta_2": 0.999, "decay_type": "pow", "memory_exponent": 0.8, "factored": True}
    known |= {"clipping_threshold": 1.0, "multiply_by_parameter_scale": True}
    o = {**known, **options}
    weight = weight.astype(float)
    row, column, moment, momentum, result = 0.0, 0.0, 0.0, 0.0, []
    for step, gradient in enumerate(gradients.astype(float)):
        t = step + 1
        decay = 1 - t ** -o["memory_exponent"]
        if o["decay_type"] == "adam":
            decay = o["beta_2"] * (1 - o["beta_2"] ** step) / (1 - o["beta_2"] ** t)
        square = gradient**2 + 1e-30
        if o["factored"] and weight.ndim >= 2:
            row = decay * row + (1 - decay) * square.mean(-1)
            column = decay * column + (1 - decay) * square.mean(-2)
            moment = row[..., :, None] * column[..., None, :] / row.mean(-1)[..., None, None]
        else:
            moment = decay * moment + (1 - decay) * square
        update = gradient / np.sqrt(moment)
        if o["clipping_threshold"]:
            update = update / max(1.0, root_mean_square(update) / o["clipping_threshold"])
        scale = max(1e-3, root_mean_square(weight)) if o["multiply_by_parameter_scale"] else 1.0
        momentum = o["beta_1"] * momentum + (1 - o["beta_1"]) * RATE * scale * update
        weight = weight - momentum
        result.append(weight)
    return np.array(result)


def updated(optimizer, start, gradients):
    """Returns the weight after each gradient."""
    weight, result = keras.Variable(start), []
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient)], [weight])
        result.append(weight.numpy())
    return np.array(result)


@pytest.mark.parametrize("shape", [[4], [3, 4], [2, 3, 4]], ids=["vector", "matrix", "stack of matrices"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"factored": False},
        {"clipping_threshold": 0.3},
        {"clipping_threshold": 0.0},
        {"multiply_by_parameter_scale": False},
        {"beta_1": 0.9},
        {"memory_exponent": 0.5},
        {"decay_type": "adam", "beta_2": 0.9},
        {"decay_type": "adam", "beta_1": 0.5, "factored": False, "clipping_threshold": 0.5},
    ],
    ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items()) or "defaults",
)
def test_six_updates_equal_numpy(rng, shape, options):
    start = rng.normal(size=shape).astype("float32")
    gradients = (rng.normal(size=[6, *shape]) * 10.0 ** rng.integers(-3, 3, [6, *[1] * len(shape)])).astype("float32")
    expected = numpy_adafactor(start, gradients, **options)
    np.testing.assert_allclose(updated(Adafactor(RATE, **options), start, gradients), expected, rtol=2e-5, atol=2e-6)


def test_a_weight_of_zeros_moves_by_the_least_scale():
    after = updated(Adafactor(RATE), np.zeros([2, 2], "float32"), np.full([1, 2, 2], -5.0, "float32"))
    np.testing.assert_allclose(after[0], np.full([2, 2], RATE * 1e-3), rtol=1e-5)


def test_it_equals_keras_adafactor_while_the_rate_is_below_what_keras_cuts_it_to(rng):
    start = rng.normal(size=[3, 4]).astype("float32")
    gradients = rng.normal(size=[9, 3, 4]).astype("float32")
    keras_form = updated(keras.optimizers.Adafactor(RATE), start, gradients)
    np.testing.assert_allclose(updated(Adafactor(RATE), start, gradients), keras_form, rtol=1e-5, atol=1e-6)


def test_the_rate_is_not_cut_with_the_number_of_updates():
    constant = keras.optimizers.schedules.PiecewiseConstantDecay([100], [0.5, 0.5])
    gradients = np.ones([9, 2], "float32")
    after = updated(Adafactor(constant, multiply_by_parameter_scale=False), np.zeros(2, "float32"), gradients)
    np.testing.assert_allclose(after[:, 0], -0.5 * np.arange(1, 10), rtol=1e-5)
    relative = updated(Adafactor(constant), np.ones(2, "float32"), gradients)
    np.testing.assert_allclose(relative[:, 0], 0.5 ** np.arange(1, 10), rtol=1e-4)
    cut = updated(keras.optimizers.Adafactor(constant), np.ones(2, "float32"), gradients)
    assert cut[-1, 0] > 2 * relative[-1, 0]


def test_a_row_without_gradient_beside_an_enormous_one_stays_where_it_is():
    gradient = np.array([[[1e12, -1e12], [0.0, 0.0]]] * 3, "float32")
    after = updated(Adafactor(RATE), np.ones([2, 2], "float32"), gradient)
    assert np.isfinite(after).all()
    np.testing.assert_array_equal(after[-1, 1], [1.0, 1.0])


def test_no_gradient_at_all_moves_nothing():
    after = updated(Adafactor(RATE), np.ones([2, 2], "float32"), np.zeros([3, 2, 2], "float32"))
    np.testing.assert_array_equal(after[-1], np.ones([2, 2]))


@pytest.mark.parametrize(
    ("options", "numbers"),
    [({}, 100 + 50 + 100), ({"factored": False}, 5000 + 100), ({"beta_1": 0.9}, 150 + 5000 + 100 + 100)],
)
def test_a_factored_matrix_keeps_its_rows_and_columns_alone(options, numbers):
    optimizer = Adafactor(**options)
    optimizer.build([keras.Variable(np.ones([100, 50])), keras.Variable(np.ones([100]))])
    kept = sum(int(np.prod(variable.shape)) for variable in optimizer.variables)
    assert kept - numbers == 2, "the number of updates and the rate are kept besides"


def test_every_argument_survives_serialisation():
    optimizer = Adafactor(0.5, 0.1, 0.9, "adam", 0.7, False, 2.0, False, 1e-20, 1e-2, weight_decay=0.1)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(copy, Adafactor)
    assert copy.get_config() == optimizer.get_config()
    assert (
        copy.get_config().items()
        >= {
            "beta_1": 0.1,
            "beta_2": 0.9,
            "decay_type": "adam",
            "memory_exponent": 0.7,
            "factored": False,
            "clipping_threshold": 2.0,
            "multiply_by_parameter_scale": False,
            "epsilon_1": 1e-20,
            "epsilon_2": 1e-2,
            "weight_decay": 0.1,
        }.items()
    )
