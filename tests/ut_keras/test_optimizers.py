"""Optimizers as tensor2tensor has them: formulas, moment of the schedule, decay that spares vectors; their state."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from ut_keras import optimizers
from ut_keras.adafactor import Adafactor
from ut_keras.hparams import Features, HParams
from ut_keras.loss_scale import BoundedLossScaleOptimizer
from ut_keras.models.build import build_model

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


@pytest.mark.parametrize(
    ("changes", "features"),
    [
        ({"recurrence_type": "act"}, Features("sequence", 9, 9)),
        ({"transformer_ffn_type": "sepconv", "add_or_concat_timing_signal": "concat"}, Features("sequence", 9, 9)),
        ({"model": "universal_transformer_encoder"}, Features("class", 9, 9, words_per_sentence=3)),
        ({"model": "lstm_seq2seq_attention", "num_hidden_layers": 1}, Features("sequence", 9, 9)),
    ],
    ids=["fc", "sepconv", "sentences", "lstm"],
)
def test_weight_decay_takes_of_every_matrix_of_a_model_and_of_no_vector(changes, features):
    recipe = {"weight_decay": 0.1, "learning_rate_schedule": "constant"}
    hparams = HPARAMS.override({**changes, **recipe})
    model = build_model(hparams, features)
    weights = model.trainable_variables
    before = [weight.numpy() for weight in weights]
    assert {len(weight.shape) for weight in weights} == {1, 2}
    optimizers.from_hparams(hparams).apply([tf.zeros(weight.shape) for weight in weights], weights)
    for weight, old in zip(weights, before, strict=True):
        expected = old * (0.8 if old.ndim > 1 else 1.0)
        np.testing.assert_allclose(weight, expected, rtol=1e-6, err_msg=weight.path)


def test_decay_is_apart_from_the_moments(rng):
    start, gradients = rng.normal(size=[2, 3]), rng.normal(size=[4, 2, 3])
    hparams = HPARAMS.override({"weight_decay": 0.1, "learning_rate_schedule": "constant"})
    optimizer, weight = optimizers.from_hparams(hparams), keras.Variable(start, name="kernel")
    for gradient in gradients:
        optimizer.apply([gradient.astype("float32")], [weight])
    expected = start
    for number in range(1, 5):  # decay acts before the update, and the moments never see it
        steps = numpy_adam(np.zeros([2, 3]), gradients[:number], [2.0] * number)
        steps -= numpy_adam(np.zeros([2, 3]), gradients[: number - 1], [2.0] * (number - 1))
        expected = expected * (1 - 2.0 * 0.1) + steps
    np.testing.assert_allclose(weight, expected, rtol=1e-4, atol=1e-5)


def test_momentum_and_sgd_equal_numpy():
    recipe = {"learning_rate_schedule": "constant", "learning_rate_constant": 0.5, "optimizer_momentum_momentum": 0.8}
    for name, expected in (("sgd", [0.5, 0.0, -0.5]), ("momentum", [0.5, -0.4, -1.62])):
        optimizer = optimizers.from_hparams(HPARAMS.override({**recipe, "optimizer": name}))
        weight, seen = keras.Variable([1.0]), []
        for _ in range(3):
            optimizer.apply([tf.constant([1.0])], [weight])
            seen.append(float(weight[0]))
        np.testing.assert_allclose(seen, expected, rtol=1e-6, err_msg=name)
    nesterov = optimizers.from_hparams(HPARAMS.override("optimizer=momentum,optimizer_momentum_nesterov=true"))
    assert nesterov.nesterov
    assert nesterov.momentum == 0.9


def test_adafactor_takes_every_hparam_of_its_name():
    text = "beta1=0.1,beta2=0.9,factored=false,decay_type=adam,memory_exponent=0.7,clipping_threshold=2"
    changes = ",".join(f"optimizer_adafactor_{part}" for part in text.split(","))
    hparams = HPARAMS.override(f"optimizer=adafactor,{changes},optimizer_adafactor_multiply_by_parameter_scale=false")
    optimizer = optimizers.from_hparams(hparams)
    assert isinstance(optimizer, Adafactor)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.factored, optimizer.decay_type) == (0.1, 0.9, False, "adam")
    assert (optimizer.memory_exponent, optimizer.clipping_threshold) == (0.7, 2.0)
    assert not optimizer.multiply_by_parameter_scale
    default = Adafactor().get_config()
    ours = optimizers.from_hparams(HPARAMS.override("optimizer=adafactor")).get_config()
    assert {name for name in default if default[name] != ours[name]} == {"learning_rate"}


def trained(gradients, ema_decay=0.0, mixed_float16=False, on_nan="stop", jit_compile=False, **changes):
    """Returns (optimizer, weights) after one update with each gradient, divided as a scaled loss needs it."""
    hparams = HPARAMS.override({"learning_rate_schedule": "constant", "learning_rate_constant": 0.5, **changes})
    optimizer = optimizers.guarded(optimizers.from_hparams(hparams, ema_decay), mixed_float16, on_nan)
    weights = [keras.Variable([[1.0], [2.0]], name="kernel"), keras.Variable([3.0], name="bias")]
    optimizer.build(weights)

    @tf.function(jit_compile=jit_compile)
    def update(gradient):
        scaled = optimizer.scale_loss(gradient)
        optimizer.apply([tf.fill([2, 1], scaled), tf.fill([1], scaled)], weights)

    for gradient in gradients:
        update(tf.constant(gradient))
    return optimizer, weights


def values(variables):
    return [variable.numpy().tolist() for variable in variables]


NAN = float("nan")
GUARDS = {"none": {}, "skip": {"on_nan": "skip"}, "float16": {"mixed_float16": True}}


@pytest.mark.parametrize("guard", GUARDS)
def test_averages_begin_as_the_first_weights_and_follow_with_the_decay(guard):
    optimizer, weights = trained([2.0, 2.0, 2.0], 0.75, **GUARDS[guard], optimizer="sgd")
    assert values(weights) == [[[-2.0], [-1.0]], [0.0]]
    # Weights 0, -1, -2 of the first row: 0, then 0.75 * 0 + 0.25 * -1, then 0.75 * -0.25 + 0.25 * -2.
    assert values(optimizers.averages(optimizer)) == [[[-0.6875], [0.3125]], [1.3125]]


@pytest.mark.parametrize("guard", ["skip", "float16"])
@pytest.mark.parametrize("gradients", [[NAN, 2.0, 2.0], [2.0, NAN, 2.0]], ids=["first", "second"])
@pytest.mark.parametrize("name", ["adam", "adafactor"])
def test_a_skipped_update_is_one_that_never_was(guard, gradients, name):
    options = {"ema_decay": 0.75, "optimizer": name, "weight_decay": 0.1, "learning_rate_schedule": "linear_warmup"}
    optimizer, weights = trained(gradients, **options, **GUARDS[guard])
    other, expected = trained([2.0, 2.0], **options)
    assert values(weights) == values(expected)
    assert values(optimizers.slots(optimizer)) == values(optimizers.slots(other))
    assert values(optimizers.averages(optimizer)) == values(optimizers.averages(other))
    assert int(optimizer.iterations) == 2, "the schedule counts updates that were made"
    assert float(optimizer.learning_rate) == float(other.learning_rate) != 0


@pytest.mark.parametrize("name", ["adam", "adafactor", "momentum", "sgd"])
def test_xla_makes_the_same_updates_and_skips_the_same(name):
    options = {"ema_decay": 0.75, "on_nan": "skip", "optimizer": name, "weight_decay": 0.1}
    (optimizer, weights), (other, expected) = (
        trained([2.0, NAN, -1.0], jit_compile=jit_compile, **options) for jit_compile in (True, False)
    )
    everything = [*weights, *optimizers.slots(optimizer), *optimizers.averages(optimizer)]
    references = [*expected, *optimizers.slots(other), *optimizers.averages(other)]
    for variable, reference in zip(everything, references, strict=True):
        np.testing.assert_allclose(variable, reference, rtol=1e-6, atol=1e-7)
    assert int(optimizer.iterations) == 2


def test_what_guards_an_optimizer():
    plain = optimizers.from_hparams(HPARAMS)
    assert optimizers.guarded(plain) is plain
    skipping = optimizers.guarded(plain, on_nan="skip")
    assert (skipping.initial_scale, skipping.moves) == (1.0, False)
    for on_nan in ("stop", "skip"):
        scaling = optimizers.guarded(plain, mixed_float16=True, on_nan=on_nan)
        assert isinstance(scaling, BoundedLossScaleOptimizer)
        assert (scaling.initial_scale, scaling.moves) == (2.0**15, True)


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("ema_decay", [0.0, 0.75])
def test_averages_slots_and_loss_scale_share_out_the_state(guard, ema_decay):
    optimizer, weights = trained([2.0, 2.0], ema_decay, **GUARDS[guard])
    names = [variable.name for variable in optimizers.slots(optimizer)]
    assert names == ["iteration", "kernel_momentum", "kernel_velocity", "bias_momentum", "bias_velocity"]
    averages = optimizers.averages(optimizer)
    assert (averages is None) == (ema_decay == 0)
    assert averages is None or [tuple(a.shape) for a in averages] == [(2, 1), (1,)]
    state = optimizers.loss_scale_state(optimizer)
    assert [float(variable) for variable in state] == ([2.0, 2.0**15] if guard == "float16" else [])


def test_slots_of_plain_adam_are_its_variables_in_their_order():
    optimizer, _ = trained([2.0])
    assert [id(slot) for slot in optimizers.slots(optimizer)] == [id(variable) for variable in optimizer.variables]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("name", ["adam", "adafactor"])
def test_training_goes_on_from_averages_slots_and_loss_scale_alone(guard, name):
    def state(optimizer):
        return [*optimizers.slots(optimizer), *optimizers.averages(optimizer), *optimizers.loss_scale_state(optimizer)]

    options = {"ema_decay": 0.75, "optimizer": name, "learning_rate_schedule": "linear_warmup", **GUARDS[guard]}
    gradients = [2.0, -1.0, NAN if GUARDS[guard] else 3.0, 0.5, 1.0, -2.0]
    whole, expected = trained(gradients, **options)
    first, weights = trained(gradients[:3], **options)
    second, restored = trained([], **options)
    for target, source in zip([*restored, *state(second)], [*weights, *state(first)], strict=True):
        target.assign(source)
    for gradient in gradients[3:]:
        scaled = float(second.scale_loss(gradient))
        second.apply([tf.fill([2, 1], scaled), tf.fill([1], scaled)], restored)
    for variable, reference in zip([*restored, *state(second)], [*expected, *state(whole)], strict=True):
        np.testing.assert_allclose(variable, reference, rtol=1e-6)


def test_optimizer_survives_serialisation():
    optimizer = optimizers.from_hparams(HPARAMS)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert copy.get_config() == optimizer.get_config()
