"""Adam as tensor2tensor has it: formula, moment of the schedule, decay that spares vectors."""

import keras
import numpy as np

from ut_keras import optimizers
from ut_keras.hparams import HParams

HPARAMS = HParams(hidden_size=4, num_heads=2, learning_rate_warmup_steps=3, optimizer_adam_epsilon=0.01)


def numpy_adam(weight, gradients, rates, beta_1=0.9, beta_2=0.997, epsilon=0.01):
    """tensor2tensor's form: epsilon is added outside of the bias correction."""
    m = v = np.zeros_like(weight)
    for t, (gradient, rate) in enumerate(zip(gradients, rates), start=1):
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        weight = weight - rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (np.sqrt(v) + epsilon)
    return weight


def test_updates_equal_numpy_with_the_rate_of_the_step_before(rng):
    start, gradients = rng.normal(size=[2, 3]), rng.normal(size=[6, 2, 3])
    rates = [2.0 * min(1, s / 3) * max(s, 3) ** -0.5 * 0.5 for s in range(6)]
    optimizer, weight = optimizers.from_hparams(HPARAMS), keras.Variable(start)
    for gradient in gradients:
        optimizer.apply([gradient.astype("float32")], [weight])
    np.testing.assert_allclose(weight, numpy_adam(start, gradients, rates), rtol=1e-4, atol=1e-5)


def test_first_update_moves_nothing_because_its_rate_is_zero():
    optimizer, weight = optimizers.from_hparams(HPARAMS), keras.Variable([1.0, 2.0])
    optimizer.apply([np.ones(2, "float32")], [weight])
    np.testing.assert_array_equal(weight, [1.0, 2.0])


def test_weight_decay_takes_rate_times_decay_and_spares_biases():
    hparams = HPARAMS.override({"weight_decay": 0.1, "learning_rate_schedule": "constant"})
    optimizer = optimizers.from_hparams(hparams)
    kernel, bias = keras.Variable([1.0], name="kernel"), keras.Variable([1.0], name="bias")
    optimizer.apply([np.zeros(1, "float32")] * 2, [kernel, bias])
    np.testing.assert_allclose(kernel, [1 - 2.0 * 0.1], rtol=1e-6)
    np.testing.assert_array_equal(bias, [1.0])


def test_optimizer_survives_serialisation():
    optimizer = optimizers.from_hparams(HPARAMS)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert copy.get_config() == optimizer.get_config()
