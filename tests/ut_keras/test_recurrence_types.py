"""The recurrence types: against numpy with every option, unrolled, rematerialised, compiled, with every halting."""

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, recurrence_references, references
from ut_keras.layers.depth_loop import Pass
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.gate import Gates
from ut_keras.layers.halting import FORMS, AdaptiveComputationTime
from ut_keras.layers.recurrence import UniversalRecurrence
from ut_keras.layers.recurrence_type import TYPES, make_type

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
MEMORY_MASK = np.array([[True] * 4, [True] + [False] * 3])
SIZES = {"num_heads": 2, "filter_size": 8}
CELLS = ("rnn", "gru", "lstm")
NEW = tuple(name for name in TYPES if name != "basic")

# Every option of every type, most of them in company.
OPTIONS = {
    "basic": {},
    "highway": {},
    "highway of everything, own carry gate": {"gates_inputs": "ist", "couple_carry_transform_gates": False},
    "highway, gates of two layers": {"gates_inputs": "s", "gate_ffn_layer": "dense_relu_dense"},
    "skip": {},
    "skip by the blocks' output, own carry gate": {"gates_inputs": "t", "couple_carry_transform_gates": False},
    "skip, gates of two layers": {"gate_ffn_layer": "dense_relu_dense"},
    "dwa": {},
    "dwa by position": {"dwa_elements": False},
    "dwa without depth embedding": {"depth_embedding": False},
    "dwa over channels": {"dwa_softmax": "channels"},
    "dwa over one channel": {"dwa_softmax": "channels", "dwa_elements": False},
    "rnn": {},
    "gru": {},
    "gru of the input": {"gru_mixes": "input"},
    "gru behind a transition": {"add_ffn_unit_to_the_transition_function": True},
    "lstm": {},
    "lstm that gives its memory": {"use_memory_as_final_state": True, "lstm_forget_bias": -0.5},
    "lstm behind a transition": {"add_ffn_unit_to_the_transition_function": True},
}


def kind_of(name):
    return name.split(",")[0].split(" ")[0]


def recurrence_of(name):
    return {"type": kind_of(name), **OPTIONS[name]}


def make(rng, name, max_steps=4, **options):
    """A built recurrence of width 4 with random weights."""
    layer = UniversalRecurrence(max_steps, recurrence=recurrence_of(name), **{**SIZES, **options})
    layer.build((None, None, 4))
    layer.set_weights([0.6 * rng.normal(size=weight.shape) for weight in layer.weights])
    return layer


def sequence(rng, shape=(2, 5, 4)):
    return tf.constant(rng.normal(size=shape), tf.float32)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("decoder", [False, True], ids=["encoder", "decoder"])
def test_every_type_equals_numpy(rng, name, decoder):
    norm = "post" if decoder else "pre"
    layer = make(rng, name, num_blocks=1 + decoder, norm=norm, causal=decoder, cross_attention=decoder)
    x, memory = sequence(rng), sequence(rng, [2, 4, 4])
    options = {"memory": memory, "memory_mask": tf.constant(MEMORY_MASK)} if decoder else {}
    output, ponder, trace = layer(x, tf.constant(MASK), trace=True, **options)
    np.testing.assert_allclose(layer(x, tf.constant(MASK), **options)[0][0], output[0], rtol=1e-4, atol=1e-5)
    for row, (length, memory_length) in enumerate(((5, 4), (3, 1))):

        def refine(state, step, length=length, row=row, memory_length=memory_length):
            state = state + references.sinusoids(range(length), 4, "paper") + references.sinusoids([step], 4, "paper")
            for block in layer.blocks:
                state = references.block(state, block, memory[row, :memory_length].numpy())
            return state

        states, result = recurrence_references.states(kind_of(name), layer.type, x[row, :length].numpy(), refine)
        close = {"rtol": 1e-3, "atol": 1e-4}
        np.testing.assert_allclose(trace["state"][:, row, :length], states, **close)
        np.testing.assert_allclose(trace["pre_final_norm"][row, :length], result, **close)
    np.testing.assert_array_equal(ponder.ponder_times, 4.0 * MASK)


def test_a_state_that_is_not_the_newest_counts_in_attention_over_depth(rng):
    """With logits that are all 0 the blocks read the plain mean of all states so far."""
    layer = make(rng, "dwa without depth embedding", signal={"position": False, "step": "none"})
    layer.type.set_weights([np.zeros([4, 4]), np.zeros([4])])
    x = sequence(rng)
    _, _, trace = layer(x, tf.constant(MASK), trace=True)
    states = [x.numpy(), *trace["state"].numpy()]
    for step in range(4):
        np.testing.assert_allclose(trace["pre_state"][step], np.mean(states[: step + 1], axis=0), rtol=1e-4, atol=1e-5)


def test_attention_over_depth_with_huge_logits_stays_finite(rng):
    layer = make(rng, "dwa")
    layer.type._bias.assign([1e4, -1e4, 5e3, 0.0])
    layer.type._kernel.assign(300 * rng.normal(size=[4, 4]))
    with tf.GradientTape() as tape:
        output, _ = layer(sequence(rng), tf.constant(MASK))
        loss = tf.reduce_sum(output**2)
    gradients = tape.gradient(loss, [variable.value for variable in layer.type.trainable_variables])
    assert all(np.all(np.isfinite(value)) for value in (output, *gradients))


def test_tensor2tensors_attention_over_depth_ignores_its_input_in_the_first_step_and_ours_does_not(rng):
    differences = []
    for name in ("dwa over channels", "dwa"):
        layer = make(np.random.default_rng(0), name, max_steps=1)
        one, other = (layer(sequence(rng), tf.constant(MASK))[0].numpy() for _ in range(2))
        differences.append(np.abs(one - other)[MASK].max())
    assert differences[0] < 1e-6 < 1e-2 < differences[1]


@pytest.mark.parametrize("name", ["highway", "skip"])
def test_gates_of_the_inputs_are_computed_once_and_the_transform_gate_begins_nearly_shut(name, monkeypatch):
    calls = []
    apply = Gates.apply
    monkeypatch.setattr(Gates, "apply", lambda self, *rest: calls.append(self.name) or apply(self, *rest))
    layer = UniversalRecurrence(5, recurrence=name, norm="pre", **SIZES)
    layer.build((None, None, 4))
    layer.type.gates.set_weights([np.zeros([4, 4]), layer.type.gates.get_weights()[1]])
    x = tf.ones([1, 3, 4])
    layer(x, tf.ones([1, 3], tf.bool))
    assert len(calls) == 1
    carry, context = layer.begin(x, Pass(tf.ones([1, 3], tf.bool), {"type": layer.type.prepare(5)}, 5))
    transform, kept = context["constants"]["gates"]
    np.testing.assert_allclose(transform, 1 / (1 + np.exp(1)) + np.zeros([1, 3, 4]), rtol=1e-5)
    np.testing.assert_allclose(kept, 1 - transform, rtol=1e-5)


def test_dropconnect_drops_weights_in_training_and_only_then(rng):
    gates = Gates({"transform": 0.0}, "dense_dropconnect", dropconnect=0.5)
    x = tf.eye(64)[None]  # the gate of a unit vector is a row of the kernel
    kernel = gates([x])[0].numpy()[0]
    np.testing.assert_allclose(kernel, gates.get_weights()[0], rtol=1e-5)
    dropped = gates([x], seed=tf.constant([1, 2]))[0].numpy()[0]
    share = np.mean(dropped == 0)
    assert 0.45 < share < 0.55
    kept = dropped != 0
    np.testing.assert_allclose(dropped[kept], 2 * kernel[kept], rtol=1e-4)
    gated = {"type": "highway", "gate_ffn_layer": "dense_dropconnect", "dropconnect_dropout": 0.5}
    layer = UniversalRecurrence(2, recurrence=gated, **SIZES)
    x, mask = sequence(rng), tf.constant(MASK)
    outputs = [layer(x, mask, seed=seed)[0].numpy() for seed in (None, None, tf.constant([1, 2]), tf.constant([3, 4]))]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.abs(outputs[0] - outputs[2]).max() > 1e-3
    assert np.abs(outputs[3] - outputs[2]).max() > 1e-3


@pytest.mark.parametrize(
    ("recurrence", "message"),
    [
        ("higway", "recurrence type"),
        ({"gates_inputs": "i"}, "neither a type's name nor"),
        (None, "recurrence=None is neither"),
        ({"type": "highway", "gates_inputs": "x"}, "letters i, s and t, each once"),
        ({"type": "highway", "gates_inputs": ""}, "letters i, s and t, each once"),
        ({"type": "highway", "gates_inputs": "ii"}, "letters i, s and t, each once"),
        ({"type": "skip", "gate_ffn_layer": "conv"}, "gate kind"),
        ({"type": "dwa", "dwa_softmax": "time"}, "dwa_softmax"),
        ({"type": "gru", "gru_mixes": "output"}, "gru_mixes"),
    ],
)
def test_a_wrong_option_is_refused_by_name(recurrence, message):
    with pytest.raises(ValueError, match=message):
        make_type(recurrence)


def test_depth_embedding_runs_less_deep_but_not_deeper(rng):
    layer = make(rng, "dwa")
    x, mask = sequence(rng), tf.constant(MASK)
    assert layer(x, mask, max_steps=2)[0].shape == [2, 5, 4]
    with pytest.raises(ValueError, match="depth embedding has rows for 4 steps"):
        layer(x, mask, max_steps=5)


@pytest.mark.parametrize("name", NEW)
def test_elastic_depth_is_that_of_a_layer_built_so_deep(rng, name):
    layer = make(rng, name, max_steps=4)
    shallow = UniversalRecurrence(2, recurrence=name, **SIZES)
    shallow.build((None, None, 4))
    weights = [value[: weight.shape[0]] for value, weight in zip(layer.get_weights(), shallow.weights, strict=True)]
    shallow.set_weights(weights)
    x, mask = sequence(rng), tf.constant(MASK)
    np.testing.assert_allclose(layer(x, mask, max_steps=2)[0], shallow(x, mask)[0], rtol=1e-4, atol=1e-5)


# -- training: the loop against itself unrolled, rematerialised, compiled ---------------------------------------------

DROPOUTS = {"input_dropout": 0.2, "residual_dropout": 0.2, "attention_dropout": 0.2, "relu_dropout": 0.2}


def called(layer, x, mask, seed):
    return layer(x, mask, seed=seed)[0]


def unrolled(layer, x, mask, seed):
    """What `UniversalRecurrence.call` computes without halting, in a Python loop."""
    context = layer.prepare(mask, tf.range(5)[None], tf.constant([5, 3]), None, None, layer.max_steps)
    x = dropout(x, layer.input_dropout, fold_seed(seed, -1))
    carry, context = layer.begin(x, Pass(mask, context, layer.max_steps, seed))
    for step in range(layer.max_steps):
        carry = layer.transform(carry, step, fold_seed(seed, step), context)[1]
    return layer.finish(layer.type.result(carry))


def gradients_of(call, layer, x, mask, seed):
    """Output and the gradients of a loss over its real positions, by input and weights."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = call(layer, x, mask, seed) * tf.cast(mask, tf.float32)[..., None]
        loss = tf.reduce_sum(output * tf.cos(tf.range(4.0)))
    variables = [variable.value for variable in layer.trainable_variables]
    return [output, *tape.gradient(loss, [x, *variables], unconnected_gradients="zero")]


WITH_DROPOUT = [
    "dwa",
    "lstm",
    *(pytest.param(name, marks=pytest.mark.slow) for name in OPTIONS if name not in ("basic", "dwa", "lstm")),
]


@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_the_loop_and_its_rematerialised_form_equal_the_unrolled_steps_with_dropout(rng, name):
    layer = make(rng, name, **DROPOUTS)
    arguments = (layer, sequence(rng), tf.constant(MASK), tf.constant([1, 2]))
    expected = gradients_of(unrolled, *arguments)
    for remat in (False, True):
        layer.remat = remat
        for one, other in zip(tf.function(gradients_of)(called, *arguments), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.slow  # XLA
@pytest.mark.parametrize("remat", [False, True], ids=["kept", "rematerialised"])
@pytest.mark.parametrize("name", NEW)
def test_training_step_compiles_with_xla_and_stays_the_same(rng, name, remat):
    layer = make(rng, name, remat=remat, norm="pre")
    arguments = (called, layer, sequence(rng), tf.constant(MASK), None)
    plain, compiled = (tf.function(gradients_of, jit_compile=jit)(*arguments) for jit in (False, True))
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


# -- with halting, of which tensor2tensor has none for these types ----------------------------------------------------


def halting_of(form, bias=-1.0):
    return AdaptiveComputationTime(form, bias_initializer=bias)


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("form", ["frozen", *(pytest.param(f, marks=pytest.mark.slow) for f in FORMS[:4])])
def test_conditional_inference_with_halting_is_the_dense_one(rng, name, form):
    """Packed rows, and for frozen the active ones alone, against all positions at every step."""
    layer = make(rng, name, max_steps=6, halting=halting_of(form))
    layer.conditional = True
    x, mask = sequence(rng, (3, 5, 4)), tf.constant([[True] * 5, [True] * 3 + [False] * 2, [False] * 5])
    packed = layer(x, mask)
    layer.conditional = False
    dense = layer(x, mask)
    real = mask.numpy()
    np.testing.assert_allclose(packed[0].numpy()[real], dense[0].numpy()[real], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(packed[1].ponder_times, dense[1].ponder_times)
    if form not in ("global", "random"):
        assert len(np.unique(dense[1].ponder_times.numpy()[real])) > 1


@pytest.mark.parametrize("name", NEW)
def test_frozen_position_keeps_all_that_the_type_carries(rng, name):
    """A position that halts at its first step is attended to as the same state ever after."""
    layer = make(rng, name, max_steps=4, halting="frozen", signal={"step": "none"})
    probability = tf.constant([[[0.1, 1.0, 0.1, 0.1, 0.1]] * 2])[0]
    layer.halting.probability = lambda *rest: probability
    _, ponder, trace = layer(sequence(rng), tf.ones([2, 5], tf.bool), trace=True)
    np.testing.assert_array_equal(ponder.ponder_times[:, 1], 1.0)
    first = trace["pre_state"][1, :, 1]
    for step in (2, 3):
        np.testing.assert_allclose(trace["pre_state"][step, :, 1], first, rtol=1e-5, atol=1e-6)
        assert np.abs(trace["pre_state"][step, :, 0] - trace["pre_state"][step - 1, :, 0]).max() > 1e-3


# -- the battery ------------------------------------------------------------------------------------------------------

ATTENTION = 4 * 4 * 4 + 2 * 4
BLOCK = ATTENTION + (4 * 8 + 8 + 8 * 4 + 4) + 2 * 4


class TypeChecks(layer_checks.LayerChecks):
    """A pre-norm decoder of one type, with a memory."""

    recurrence = None

    def make(self, **kwargs):
        options = {"causal": True, "cross_attention": True, "norm": "pre", "zero_padding": True}
        return UniversalRecurrence(3, recurrence=self.recurrence, **options, **SIZES, **kwargs)

    def inputs(self, rng):
        x, memory = rng.normal(size=[2, 2, 5, 4]).astype("float32")
        return {"x": x, "padding_mask": MASK, "memory": memory[:, :4], "memory_mask": MEMORY_MASK}

    def call(self, layer, inputs):
        return super().call(layer, inputs)[0]


@pytest.mark.slow
class TestLstm(TypeChecks):
    recurrence = "lstm"
    weight_count = 2 * ATTENTION + 8 + 2 * 8 + 4 * (8 * 4 + 4)


@pytest.mark.slow
class TestHighway(TypeChecks):
    recurrence = {"type": "highway", "gates_inputs": "ist", "couple_carry_transform_gates": False}
    weight_count = BLOCK + ATTENTION + 8 + 3 * 8 + 2 * (12 * 4 + 4)


@pytest.mark.slow
class TestSkip(TypeChecks):
    recurrence = {"type": "skip", "gate_ffn_layer": "dense_relu_dense"}
    weight_count = BLOCK + ATTENTION + 8 + 8 + (4 * 8 + 8 + 8 * 4 + 4)


@pytest.mark.slow
class TestDepthwiseAttention(TypeChecks):
    recurrence = "dwa"
    untrained = ("type/bias",)  # the same for all states: cancels in the softmax
    weight_count = BLOCK + ATTENTION + 8 + 4 * 4 + 4 * 4 + 4


@pytest.mark.slow
class TestGru(TypeChecks):
    recurrence = "gru"
    weight_count = 2 * ATTENTION + 8 + 2 * 8 + 3 * (8 * 4 + 4)


@pytest.mark.slow
class TestRnn(TypeChecks):
    recurrence = "rnn"
    weight_count = 2 * ATTENTION + 8 + 2 * 8 + 8 * 4 + 4


class TestGates(layer_checks.LayerChecks):
    weight_count = 2 * (8 * 8 + 8 + 8 * 4 + 4)

    def make(self, **kwargs):
        return Gates({"one": 1.0, "other": 0.0}, "dense_relu_dense", filter_size=8, **kwargs)

    def inputs(self, rng):
        one, other = rng.normal(size=[2, 2, 5, 4]).astype("float32")
        return {"one": one, "other": other, "padding_mask": MASK}

    def call(self, layer, inputs):
        return layer([inputs["one"], inputs["other"]])
