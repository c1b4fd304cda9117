"""Plain blocks before and behind a recurrence: numbers, the battery, and decoding with one cache for all parts."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references, tiny_models
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.halting import FORMS, AdaptiveComputationTime
from ut_keras.layers.mixed import MixedRecurrence
from ut_keras.layers.recurrence import UniversalRecurrence
from ut_keras.layers.recurrence_type import TYPES
from ut_keras.layers.stack import BlockStack

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
MEMORY_MASK = np.array([[True] * 4, [True] + [False] * 3])
BLOCK = 4 * 4 * 4 + (4 * 8 + 8 + 8 * 4 + 4) + 2 * 8
SIZES = {"num_heads": 2, "filter_size": 8}
BOTH = "before_ut,after_ut"
MIXES = ("before_ut", "after_ut", BOTH)
TARGETS = np.array([[5, 3, 8, 2, 7, 4], [2, 2, 8, 6, 3, 5], [3, 4, 4, 7, 2, 6]], np.int32)
INPUTS = np.array([[3, 4, 5, 1, 0], [6, 7, 8, 2, 1], [5, 1, 0, 0, 0]], np.int32)


@pytest.mark.slow
class TestBeforeAndAfter(layer_checks.LayerChecks):
    weight_count = 3 * BLOCK + 2 * 8 + 16 * 4 + 8 + 5

    def make(self, **kwargs):
        signal = {"layout": "t2t", "step": "learned", "combine": "concat"}
        return MixedRecurrence(BOTH, 1, max_steps=2, norm="pre", signal=signal, halting="basic", **SIZES, **kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": MASK}

    def call(self, layer, inputs):
        output, ponder = super().call(layer, inputs)
        return output, ponder.ponder_times, ponder.remainders


def make(rng, mix=BOTH, **options):
    """A built layer of width 4 whose output depends on everything, with halting at different steps if there is any."""
    layer = MixedRecurrence(mix, **{"max_steps": 4, **SIZES, **options})
    layer.build((None, None, 4))
    perturb(layer, rng)
    if layer.halting is not None:
        layer.halting.set_weights([rng.normal(size=[4, 1]), np.array([-1.0])])
    return layer


def perturb(layer, rng):
    for variable in layer.trainable_variables:
        variable.assign_add(0.3 * rng.normal(size=variable.shape))


def sequence(rng):
    return tf.constant(rng.normal(size=[2, 5, 4]), tf.float32)


def group(x, stack, memory=None, layout="paper"):
    """What a group makes of one sequence [L, D]: the position signal once, then its blocks."""
    if stack is None:
        return x
    x = x + references.sinusoids(range(len(x)), x.shape[1], layout)
    for block in stack.blocks:
        x = references.block(x, block, memory)
    return x


@pytest.mark.parametrize("mix", [BOTH, *(pytest.param(mix, marks=pytest.mark.slow) for mix in MIXES[:2])])
def test_parts_come_one_after_the_other_before_the_closing_norm(rng, mix):
    layer = make(rng, mix, norm="pre", halting="accumulated", causal=True, cross_attention=True)
    x, memory = sequence(rng), tf.constant(rng.normal(size=[2, 4, 4]), tf.float32)
    rest = {"memory": memory, "memory_mask": tf.constant(MEMORY_MASK)}
    output, ponder, traces = layer(x, tf.constant(MASK), trace=True, **rest)
    for row, length, seen in ((0, 5, 4), (1, 3, 1)):
        own = memory[row, :seen].numpy()
        state = group(x[row, :length].numpy(), layer.before, own)
        refined, alone = layer.recurrence(
            tf.constant(state[None], tf.float32),
            tf.ones([1, length], tf.bool),
            memory=own[None],
            memory_mask=tf.ones([1, seen], tf.bool),
        )
        state = group(refined[0].numpy(), layer.after, own)
        np.testing.assert_allclose(traces["pre_final_norm"][row, :length], state, rtol=1e-3, atol=1e-4)
        scale, bias = layer.final_norm.scale.numpy(), layer.final_norm.bias.numpy()
        normed = references.layer_norm(state, scale, bias)
        np.testing.assert_allclose(output[row, :length], normed, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(ponder.ponder_times[row, :length], alone.ponder_times[0])
    assert len(np.unique(ponder.ponder_times)) > 1


@pytest.mark.parametrize(
    "signal",
    [
        {"layout": "t2t", "combine": "concat", "step": "learned"},
        {"layout": "t2t", "shift_by_step": True},
        {"position": False},
    ],
    ids=["concatenated", "start index step", "no positions"],
)
def test_a_group_adds_the_plain_position_signal_whatever_a_step_does_with_it(rng, signal):
    layer = make(rng, "before_ut", num_mixedin_layers=1, signal=signal, max_steps=1)
    x, mask = sequence(rng)[:1], tf.ones([1, 5], tf.bool)
    state = x[0].numpy()
    if signal.get("position", True):
        state = state + references.sinusoids(range(5), 4, "t2t")
    state = references.block(state, layer.before.blocks[0])
    expected, _ = layer.recurrence(tf.constant(state[None], tf.float32), mask)
    np.testing.assert_allclose(layer(x, mask)[0], expected, rtol=1e-3, atol=1e-4)


def test_positions_that_are_given_are_those_of_all_parts(rng):
    layer, x, mask = make(rng), sequence(rng), tf.constant(MASK)
    positions = tf.constant([[7, 8, 9, 10, 11]])
    state = layer.before(x, mask, positions=positions)[0]
    state = layer.recurrence(state, mask, positions=positions)[0]
    state = layer.after(state, mask, positions=positions)[0]
    output = layer(x, mask, positions=positions)[0]
    np.testing.assert_allclose(output, state, rtol=1e-5, atol=1e-6)
    assert np.abs(output - layer(x, mask)[0]).max() > 1e-2


def test_input_dropout_comes_once_and_before_everything(rng):
    layer, x, mask = make(rng, input_dropout=0.5, conditional=False), sequence(rng), tf.constant(MASK)
    seed = tf.constant([1, 2])
    dropped = dropout(x, 0.5, fold_seed(seed, -1))
    np.testing.assert_allclose(layer(x, mask, seed=seed)[0], layer(dropped, mask)[0], rtol=1e-4, atol=1e-5)


def test_each_part_draws_dropout_of_its_own(rng, monkeypatch):
    seeds = []
    for kind in (BlockStack, UniversalRecurrence):
        call = kind.call

        def watched(self, *arguments, seed=None, call=call, **options):
            seeds.append(tuple(seed.numpy()))
            return call(self, *arguments, seed=seed, **options)

        monkeypatch.setattr(kind, "call", watched)
    make(rng, residual_dropout=0.2)(sequence(rng), tf.constant(MASK), seed=tf.constant([1, 2]))
    assert len(set(seeds)) == 3


def test_rematerialised_parts_give_the_same_gradients_with_dropout(rng):
    options = {"residual_dropout": 0.2, "attention_dropout": 0.2, "input_dropout": 0.2, "halting": "basic"}
    plain = make(rng, **options)
    remat = make(rng, remat=True, **options)
    remat.set_weights(plain.get_weights())
    x, mask, results = sequence(rng), tf.constant(MASK), []
    for layer in (plain, remat):
        with tf.GradientTape() as tape:
            output, ponder = layer(x, mask, seed=tf.constant([1, 2]))
            loss = tf.reduce_sum(output * tf.cos(tf.range(4.0))) + tf.reduce_sum(ponder.remainders)
        results.append([output, *tape.gradient(loss, [variable.value for variable in layer.trainable_variables])])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("halting", "causal"),
    [("frozen", False), *(pytest.param(*one, marks=pytest.mark.slow) for one in (("none", False), ("frozen", True)))],
)
def test_conditional_inference_gives_real_positions_the_same(rng, halting, causal):
    layer = make(rng, halting=halting, causal=causal, conditional=True)
    dense = make(rng, halting=halting, causal=causal, conditional=False)
    dense.set_weights(layer.get_weights())
    x, mask = sequence(rng), tf.constant(MASK)
    for one, other in zip(layer(x, mask), dense(x, mask)):
        for part, expected in zip(tf.nest.flatten(one)[:2], tf.nest.flatten(other)[:2]):
            np.testing.assert_allclose(part.numpy()[MASK], expected.numpy()[MASK], rtol=1e-4, atol=1e-5)


def decoded(model, features, max_steps=None, beams=2):
    """Logits [B, 4, V] and ponder times [B, 4] of decoding with a cache behind two positions that are known at once.

    The targets are hypothesis 1.
    """
    memory = model.encode(features, max_steps=max_steps)
    decoder = model.start_decoding(memory, max_steps=max_steps)
    targets = features["targets"]
    state, _ = decoder.start(tf.constant(targets[:, :2]), beams, tf.constant(6))
    logits, times = [], []
    for position in range(2, 6):
        ids = np.full([len(targets), beams], 8, np.int32)
        ids[:, 1] = targets[:, position - 1]
        found, taken, state = decoder.step(state, tf.constant(ids), tf.constant(position))
        logits.append(found.numpy()[:, 1])
        times.append(taken.numpy()[:, 1])
    return np.stack(logits, axis=1), np.stack(times, axis=1)


def assert_cached_equals_full(kind="seq2seq", max_steps=None, rows=slice(None), **options):
    """Returns the ponder times [B, 4]."""
    model = tiny_models.make(kind, num_mixedin_layers=1, **options)
    perturb(model, np.random.default_rng(3))
    features = {"inputs": INPUTS[rows], "targets": TARGETS[rows]}
    full, ponder = model(features, max_steps=max_steps, return_ponder=True)
    logits, times = decoded(model, features, max_steps)
    np.testing.assert_allclose(logits, full.numpy()[:, 2:], rtol=1e-4, atol=2e-5)
    np.testing.assert_array_equal(times, ponder["decoder"].ponder_times[:, 2:])
    return times


@pytest.mark.parametrize(
    ("mix", "transition"),
    [
        (BOTH, "sepconv"),
        *(pytest.param(mix, "sepconv", marks=pytest.mark.slow) for mix in MIXES[:2]),
        *(pytest.param(mix, "fc", marks=pytest.mark.slow) for mix in MIXES),
    ],
)
def test_decoding_with_a_cache_gives_the_logits_of_a_full_pass(mix, transition):
    assert_cached_equals_full(mix=mix, halting="frozen", transition=transition)


def test_parts_find_their_entries_at_another_depth_of_the_recurrence():
    """Of a single row, so that the loop ends before the last step, and what later positions read there is filled in."""
    options = {"mix": BOTH, "halting": "frozen", "signal": {"shift_by_step": True}}
    times = assert_cached_equals_full(max_steps=3, rows=slice(1, 2), **options)
    assert times[0, 0] < times[0, 1]


@pytest.mark.parametrize("recurrence", ["dwa", "gru"])
def test_a_recurrence_type_between_groups_decodes_with_a_cache(recurrence):
    assert_cached_equals_full("language model", mix=BOTH, recurrence=recurrence, norm="pre")


@pytest.mark.slow
@pytest.mark.parametrize("form", ("none", *FORMS))
@pytest.mark.parametrize("recurrence", TYPES)
def test_every_type_with_every_halting_decodes_with_a_cache(recurrence, form):
    halting = form if form == "none" else AdaptiveComputationTime(form, bias_initializer=-1.0)
    # Positions that rest, which are filled in, take one block and no convolutions.
    options = {"num_blocks": 1} if form == "frozen" else {"num_blocks": 2, "transition": "sepconv"}
    assert_cached_equals_full(mix=BOTH, recurrence=recurrence, norm="pre", halting=halting, **options)


@pytest.mark.parametrize("kind", ["language model", pytest.param("seq2seq", marks=pytest.mark.slow)])
def test_a_saved_model_loads_with_its_groups(kind, tmp_path):
    batch = tiny_models.rows(kind)
    model = tiny_models.make(kind, mix=BOTH, num_mixedin_layers=1, halting="basic", norm="pre")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(batch), model(batch), rtol=1e-5, atol=1e-6)


def test_groups_keep_their_transition_where_the_recurrence_has_none():
    layer = MixedRecurrence(BOTH, recurrence="gru", **SIZES)
    copy = MixedRecurrence.from_config(layer.get_config())
    for one in (layer, copy):
        kinds = [part.blocks[0].ffn and part.blocks[0].ffn.kind for part in (one.before, one.recurrence, one.after)]
        assert kinds == ["fc", None, "fc"]


def test_without_a_mix_the_body_and_the_saved_config_are_as_ever():
    model = tiny_models.make("language model")
    assert type(model.decoder.body) is UniversalRecurrence
    assert "mix" not in model.get_config()
    assert type(tiny_models.make("language model", mix=None, num_mixedin_layers=2).decoder.body) is UniversalRecurrence


def test_groups_have_weights_of_their_own_and_no_closing_norm(rng):
    layer = make(rng, BOTH, num_mixedin_layers=2, norm="pre")
    assert layer.count_params() == 5 * BLOCK + 8
    assert [part.final_norm for part in (layer.before, layer.recurrence, layer.after)] == [None] * 3


@pytest.mark.parametrize("mix", ["before", "", "before_ut;after_ut", "before_ut,before_ut"])
def test_another_mix_is_refused_by_name(mix):
    with pytest.raises(ValueError, match=f"mix='{mix}' is not 'before_ut', 'after_ut' or 'before_ut,after_ut'"):
        MixedRecurrence(mix, **SIZES)


@pytest.mark.parametrize("name", ["num_mixedin_layers", "num_blocks"])
def test_no_blocks_at_all_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"{name}=0: "):
        MixedRecurrence("before_ut", **{**SIZES, name: 0})
