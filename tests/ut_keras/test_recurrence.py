"""The recurrence over depth: against numpy with every halting, against itself unrolled, its depth, its dropout."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references
from ut_keras.layers.depth_loop import Pass
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.halting import FORMS, AdaptiveComputationTime
from ut_keras.layers.recurrence import UniversalRecurrence

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
MEMORY_MASK = np.array([[True] * 4, [True] + [False] * 3])
BLOCK = 4 * 4 * 4 + (4 * 8 + 8 + 8 * 4 + 4) + 2 * 8
SIZES = {"num_heads": 2, "filter_size": 8}


@pytest.mark.slow  # the battery of a second model
class TestFixedSteps(layer_checks.LayerChecks):
    weight_count = 2 * BLOCK + 8 + 3 * 8 + 16 * 4

    def make(self, **kwargs):
        signal = {"layout": "t2t", "step": "learned", "combine": "concat"}
        return UniversalRecurrence(3, num_blocks=2, norm="pre", signal=signal, **SIZES, **kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": MASK}

    def call(self, layer, inputs):
        output, ponder = super().call(layer, inputs)
        return output, ponder.ponder_times


class TestFrozenDecoder(layer_checks.LayerChecks):
    weight_count = BLOCK + 4 * 4 * 4 + 8 + 5

    def make(self, **kwargs):
        options = {"causal": True, "cross_attention": True}
        return UniversalRecurrence(4, halting="frozen", **options, **SIZES, **kwargs)

    def inputs(self, rng):
        x, memory = rng.normal(size=[2, 2, 5, 4]).astype("float32")
        return {"x": x, "padding_mask": MASK, "memory": memory[:, :4], "memory_mask": MEMORY_MASK}

    def call(self, layer, inputs):
        output, ponder = super().call(layer, inputs)
        return output, ponder.ponder_times, ponder.remainders


def make(rng, form="none", max_steps=6, bias=-1.0, act=None, **options):
    """A built recurrence of width 4 with random weights, so that positions halt at different steps."""
    halting = form if form == "none" else AdaptiveComputationTime(form, bias_initializer=bias, **(act or {}))
    layer = UniversalRecurrence(max_steps, halting, **{**SIZES, **options})
    layer.build((None, None, 4))
    layer.set_weights([0.6 * rng.normal(size=weight.shape) for weight in layer.weights])
    if form not in ("none", "random"):
        layer.halting.set_weights([rng.normal(size=[4, 1]), np.array([bias])])
    return layer


def sequence(rng, shape=(2, 5, 4)):
    return tf.constant(rng.normal(size=shape), tf.float32)


def reference_of(layer, x, memory=None, noise=None):
    """numpy's recurrence of one sequence [L, 4] with the weights of `layer`."""

    def transform(state):
        for block in layer.blocks:
            state = references.block(state, block, memory)
        return state

    def signal(state, step):
        positions = references.sinusoids(range(len(state)), 4, "paper")
        return state + positions + references.sinusoids([step], 4, "paper")

    def probability(pre_state, step):
        if layer.halting.form == "random":
            return noise[step]
        kernel, bias = (weight.numpy().astype(float) for weight in layer.halting.weights)
        own = 1 / (1 + np.exp(-(pre_state @ kernel[:, 0] + bias)))
        if layer.halting.form != "global":
            return own
        return np.array([own[: i + 1].mean() if layer.causal else own.mean() for i in range(len(own))])

    return references.recurrence(x, transform, signal, probability, layer.max_steps, layer.halting.form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decoder", [False, True])
def test_every_halting_equals_numpy(rng, form, decoder):
    bias = 0.5 if form == "global" and not decoder else 0.0
    layer = make(rng, form, bias=bias, num_blocks=1 + decoder, causal=decoder, cross_attention=decoder)
    x, memory = sequence(rng), sequence(rng, [2, 4, 4])
    options = {"memory": memory, "memory_mask": tf.constant(MEMORY_MASK)} if decoder else {}
    output, ponder, trace = layer(x, tf.constant(MASK), trace=True, **options)
    longest = 0
    for row, (length, memory_length) in enumerate(((5, 4), (3, 1))):
        noise = trace["probability"][:, row, :length].numpy()
        expected = reference_of(layer, x[row, :length].numpy(), memory[row, :memory_length].numpy(), noise)
        steps = expected["steps"]
        longest = max(longest, steps)
        close = {"rtol": 1e-3, "atol": 1e-4}
        np.testing.assert_allclose(output[row, :length], expected["output"], **close)
        np.testing.assert_array_equal(ponder.ponder_times[row, :length], expected["ponder_times"])
        np.testing.assert_allclose(ponder.remainders[row, :length], expected["remainders"], **close)
        np.testing.assert_allclose(trace["pre_state"][:steps, row, :length], expected["pre_states"], **close)
        np.testing.assert_allclose(trace["state"][:steps, row, :length], expected["states"], **close)
        np.testing.assert_allclose(
            trace["halting_probability"][-1, row, :length],
            np.where(expected["remainders"] > 0, 1.0, expected["weights"].sum(axis=0)),
            **close,
        )
    assert int(trace["steps"]) == longest
    assert len(np.unique(ponder.ponder_times.numpy()[MASK])) > 1, "all positions halt together: a weak test"
    np.testing.assert_array_equal(ponder.ponder_times.numpy()[~MASK], 0)
    np.testing.assert_array_equal(ponder.remainders.numpy()[~MASK], 0)
    np.testing.assert_array_equal(ponder.weights, MASK)


def given(*rows):
    """A halting probability that reads row `step` of `rows`, each a list over positions."""
    return lambda state, context, mask, causal, seed, step, *rest: tf.constant([rows])[:, step]


def test_frozen_position_stays_as_it_was_and_is_attended_to_as_it_was(rng):
    layer = make(rng, "frozen", max_steps=4)
    layer.halting.probability = given([0.995, 0.1], [0.5, 0.1], [0.5, 0.1], [0.5, 0.1])
    x, mask = sequence(rng, [1, 2, 4]), tf.ones([1, 2], tf.bool)
    output, ponder, trace = layer(x, mask, trace=True)
    assert ponder.ponder_times.numpy().tolist() == [[1, 4]]
    halted = trace["state"][0, 0, 0].numpy()
    np.testing.assert_allclose(output[0, 0], halted, rtol=1e-5)
    for step in (1, 2, 3):
        signal = references.sinusoids([0], 4, "paper") + references.sinusoids([step], 4, "paper")
        np.testing.assert_allclose(trace["pre_state"][step, 0, 0], halted + signal[0], rtol=1e-4, atol=1e-5)


def test_in_other_forms_a_halted_position_goes_on_changing(rng):
    layer = make(rng, "accumulated", max_steps=3)
    layer.halting.probability = given([0.995, 0.1], [0.5, 0.1], [0.5, 0.1])
    output, _, trace = layer(sequence(rng, [1, 2, 4]), tf.ones([1, 2], tf.bool), trace=True)
    np.testing.assert_allclose(output[0, 0], trace["state"][0, 0, 0], rtol=1e-5)
    signal = references.sinusoids([0], 4, "paper") + references.sinusoids([2], 4, "paper")
    np.testing.assert_allclose(trace["pre_state"][2, 0, 0], trace["state"][1, 0, 0] + signal[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("form", "total"),
    [("accumulated", 1.0), ("frozen", 1.0), ("basic", 1 - 0.8**3), ("global", 1 - 0.8**3)],
)
def test_constant_candidate_comes_out_times_the_sum_of_weights(rng, form, total):
    """Cut off at 3 steps of 0.2: weighted sums give the candidate itself, the others what they have reached."""
    layer = make(rng, form, max_steps=3, conditional=False)
    candidate = sequence(rng, [1, 2, 4])
    layer.transform = lambda state, *rest: (state, candidate)
    layer.halting.probability = given(*[[0.2, 0.2]] * 3)
    output, ponder = layer(sequence(rng, [1, 2, 4]), tf.ones([1, 2], tf.bool))
    np.testing.assert_allclose(output, total * candidate.numpy(), rtol=1e-5)
    np.testing.assert_allclose(ponder.remainders, np.full([1, 2], 0.6 if total == 1.0 else 0.0), atol=1e-6)


def test_no_remainder_at_the_limit_where_the_option_says_so(rng):
    layer = make(rng, "accumulated", max_steps=3, act={"remainder_at_limit": False}, conditional=False)
    layer.halting.probability = given(*[[0.2, 0.4]] * 3)
    _, ponder = layer(sequence(rng, [1, 2, 4]), tf.ones([1, 2], tf.bool))
    np.testing.assert_allclose(ponder.remainders, [[0.0, 0.2]], atol=1e-6)
    np.testing.assert_allclose(ponder.halting_probability[-1], [[0.6, 1.0]], atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_loop_stops_when_all_have_halted(rng, form):
    layer = make(rng, form, max_steps=20)
    layer.halting.probability = lambda state, *rest: tf.fill(tf.shape(state)[:2], 0.995)
    run = tf.function(lambda x, mask: layer(x, mask, trace=True))
    _, ponder, trace = run(sequence(rng), tf.constant(MASK))
    assert int(trace["steps"]) == 1
    np.testing.assert_array_equal(ponder.ponder_times, MASK.astype(float))
    assert trace["state"].shape[0] == 20
    np.testing.assert_array_equal(trace["state"][1:], np.zeros([19, 2, 5, 4]))
    np.testing.assert_array_equal(ponder.halting_probability[1:], np.ones([19, 2, 5]))


def test_padding_does_not_prolong_the_loop_and_a_batch_of_padding_runs_no_step(rng):
    layer = make(rng, "basic", max_steps=6)
    layer.halting.probability = given([0.995, 0.1], *[[0.5, 0.1]] * 5)
    x = sequence(rng, [1, 2, 4])
    assert int(layer(x, tf.constant([[True, False]]), trace=True)[2]["steps"]) == 1
    assert int(layer(x, tf.constant([[True, True]]), trace=True)[2]["steps"]) == 6
    output, ponder, trace = layer(x, tf.constant([[False, False]]), trace=True)
    assert int(trace["steps"]) == 0
    assert np.all(np.isfinite(output))
    np.testing.assert_array_equal(ponder.ponder_times, [[0, 0]])


@pytest.mark.parametrize("form", ["none", "frozen"])
@pytest.mark.parametrize("depth", [2, 9])
def test_elastic_depth_is_that_of_a_layer_built_so_deep(rng, form, depth):
    layer = make(rng, form, max_steps=4, bias=-4.0)
    other = make(rng, form, max_steps=depth, bias=-4.0)
    other.set_weights(layer.get_weights())
    x, mask = sequence(rng), tf.constant(MASK)
    output, ponder, trace = layer(x, mask, max_steps=depth, trace=True)
    expected, expected_ponder = other(x, mask)
    np.testing.assert_allclose(output[MASK], expected[MASK], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ponder.ponder_times, expected_ponder.ponder_times)
    assert int(trace["steps"]) == depth == len(ponder.halting_probability)
    assert np.abs(output - layer(x, mask)[0])[MASK].max() > 1e-3


def test_learned_steps_run_less_deep_but_not_deeper(rng):
    layer = make(rng, max_steps=4, signal={"step": "learned"})
    x, mask = sequence(rng), tf.constant(MASK)
    trace = layer(x, mask, trace=True)[2]
    np.testing.assert_allclose(layer(x, mask, max_steps=2)[0][MASK], trace["state"][1][MASK], rtol=1e-5)
    with pytest.raises(ValueError, match="max_steps=5: the learned step signal has 4 rows"):
        layer(x, mask, max_steps=5)


def test_weights_are_shared_by_all_steps():
    counts = []
    for max_steps in (1, 12):
        layer = UniversalRecurrence(max_steps, "basic", **SIZES)
        layer.build((None, None, 4))
        counts.append(layer.count_params())
    assert counts == [BLOCK + 5] * 2


def unrolled(layer, x, mask, seed):
    """What `UniversalRecurrence.call` computes with halting, in a Python loop without early exit."""
    context = layer.prepare(mask, tf.range(5)[None], tf.constant([5, 3]), None, None, layer.max_steps)
    x = dropout(x, layer.input_dropout, fold_seed(seed, -1))
    carry, context = layer.begin(x, Pass(mask, context, layer.max_steps, seed))
    halting, output = layer.halting.initial_state(mask), tf.zeros_like(x)
    for step in range(layer.max_steps):
        step_seed = fold_seed(seed, step)
        pre_state, new = layer.transform(carry, step, step_seed, context)
        noise = fold_seed(step_seed, -2)
        p = layer.halting.probability(pre_state, context["halting"], mask, layer.causal, noise, step)
        halting, weight, running = layer.halting.step(halting, p, step + 1 == layer.max_steps)
        output = layer.halting.mix(output, layer.type.result(new), weight)
        carry = tf.nest.map_structure(functools.partial(layer.halting.keep, running=running), carry, new)
    return output, halting.remainders


DROPOUTS = {"input_dropout": 0.2, "residual_dropout": 0.2, "attention_dropout": 0.2, "relu_dropout": 0.2}


def called(layer, x, mask, seed):
    output, ponder = layer(x, mask, seed=seed)
    return output, ponder.remainders


def gradients_of(call, layer, x, mask, seed):
    """Output, remainders and the gradients of a loss over both; `call`: `called` or `unrolled`."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        output, remainders = call(layer, x, mask, seed)
        loss = tf.reduce_sum(output * tf.cos(tf.range(4.0))) + tf.reduce_sum(remainders)
    variables = [variable.value for variable in layer.trainable_variables]
    return [output, remainders, *tape.gradient(loss, [x, *variables], unconnected_gradients="zero")]


@pytest.mark.parametrize(("form", "transition"), [*((form, "fc") for form in FORMS), ("frozen", "sepconv")])
def test_while_loop_equals_the_unrolled_blocks_with_dropout(rng, form, transition):
    layer = make(rng, form, max_steps=5, transition=transition, **DROPOUTS)
    arguments = (layer, sequence(rng), tf.constant(MASK), tf.constant([1, 2]))
    ours = tf.function(gradients_of)(called, *arguments)
    for one, other in zip(ours, gradients_of(unrolled, *arguments), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "random"])
def test_halting_unit_has_a_gradient_from_the_task_loss_alone(rng, form):
    layer = make(rng, form)
    with tf.GradientTape() as tape:
        output, _ = layer(sequence(rng), tf.constant(MASK))
        loss = tf.reduce_sum(output * tf.cos(tf.range(4.0)))
    kernel, bias = tape.gradient(loss, [variable.value for variable in layer.halting.trainable_variables])
    assert np.abs(kernel).max() > 1e-4
    assert abs(float(bias[0])) > 1e-5


def test_ponder_cost_has_a_gradient_through_remainders_only(rng):
    layer = make(rng, "basic", bias=1.0)
    with tf.GradientTape(persistent=True) as tape:
        _, ponder = layer(sequence(rng), tf.constant(MASK))
        steps, remainders = tf.reduce_sum(ponder.ponder_times), tf.reduce_sum(ponder.remainders)
    kernel = layer.halting.trainable_variables[0].value
    assert tape.gradient(steps, kernel) is None
    assert np.abs(tape.gradient(remainders, kernel)).max() > 1e-4


def test_every_step_has_a_seed_of_its_own_and_the_seed_of_the_call_decides(rng):
    layer, seen = make(rng, max_steps=5, residual_dropout=0.5), []
    transform = layer.transform

    def record(state, step, seed, context, *rest):
        seen.append(tuple(seed.numpy().tolist()))
        return transform(state, step, seed, context, *rest)

    layer.transform = record
    x, mask = sequence(rng), tf.constant(MASK)
    outputs = [layer(x, mask, seed=tf.constant(seed))[0] for seed in ([1, 2], [1, 2], [1, 3])]
    assert len(set(seen[:5])) == 5
    assert seen[:5] == seen[5:10]
    assert not set(seen[:5]) & set(seen[10:])
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.abs(outputs[0] - outputs[2]).max() > 1e-2


@pytest.mark.parametrize("form", FORMS)
def test_halting_is_float32_under_mixed_precision(rng, form):
    layer = UniversalRecurrence(3, form, dtype="mixed_bfloat16", **SIZES)
    output, ponder, trace = layer(sequence(rng), tf.constant(MASK), trace=True)
    assert output.dtype == tf.bfloat16
    assert {value.dtype for value in ponder} == {tf.float32}
    assert trace["probability"].dtype == tf.float32


@pytest.mark.slow  # XLA
def test_training_step_compiles_with_xla_and_stays_the_same(rng):
    layer = make(rng, "frozen", max_steps=4)
    arguments = (called, layer, sequence(rng), tf.constant(MASK), None)
    plain, compiled = (tf.function(gradients_of, jit_compile=jit)(*arguments) for jit in (False, True))
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
