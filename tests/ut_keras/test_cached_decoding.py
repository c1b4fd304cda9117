"""Decoding with a cache against the full forward pass: every model, halting form, transition and signal."""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny_models
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.recomputed import RecomputedDecoder
from ut_keras.decoding.search import decoder_of
from ut_keras.errors import UserError
from ut_keras.layers.halting import FORMS, AdaptiveComputationTime
from ut_keras.models.language_model import UniversalTransformerLM
from ut_keras.models.lstm import LSTMSeq2Seq
from ut_keras.models.transformer import Transformer, TransformerLM
from ut_keras.models.universal_transformer import UniversalTransformer

SIZES = {"hidden_size": 8, "num_heads": 2, "filter_size": 16}
INPUTS = np.array([[3, 4, 5, 1, 0], [6, 7, 8, 9, 1], [5, 1, 0, 0, 0]], np.int32)
TARGETS = np.array([[5, 3, 9, 2, 7, 4], [2, 2, 8, 6, 3, 5], [9, 4, 4, 7, 2, 6]], np.int32)
FORMS_AND_NONE = ("none", *FORMS)

SIGNALS = {
    "paper": {},
    "learned, concatenated, pre-norm": {
        "signal": {"step": "learned", "layout": "t2t", "combine": "concat"},
        "norm": "pre",
    },
    "start index step": {"signal": {"shift_by_step": True}},
    "no signals": {"signal": {"position": False, "step": "none"}},
    "relative attention": {"max_relative_position": 2},
    "hard attention": {"hard_attention_k": 3},
    "relative and hard attention, SRU": {"max_relative_position": 2, "hard_attention_k": 3, "sru": True},
    "two blocks": {"num_blocks": 2},
    "recomputed in training": {"remat": True},
}


def randomized(model, rng):
    """The model with large random weights, so that positions halt at different steps and nothing is symmetric."""
    for variable in model.trainable_variables:
        variable.assign(0.5 * rng.normal(size=variable.shape))
    return model


def halting_of(form):
    return form if form == "none" else AdaptiveComputationTime(form, bias_initializer=-1.0)


def universal(rng, form="none", language_model=False, **options):
    make = UniversalTransformerLM if language_model else UniversalTransformer
    return randomized(make(11, max_steps=4, halting=halting_of(form), **{**SIZES, **options}), rng)


def full_and_cached(model, prefix=0, beams=1, grow_at=None, decoder=None, dtype="float32"):
    """Returns logits [3, 6 - prefix, V] and ponder times of a full pass and of decoding position by position.

    With `beams` the last hypothesis carries the targets, the others other ids; they change places at every step.
    """
    has_inputs = not isinstance(model, UniversalTransformerLM)
    x = {"inputs": INPUTS, "targets": TARGETS} if has_inputs else {"targets": TARGETS}
    full, ponder = model(x, return_ponder=True)
    if decoder is None:
        decoder = model.start_decoding(model.encode({name: tf.constant(ids) for name, ids in x.items()}))
    length = TARGETS.shape[1]
    capacity = length if grow_at is None else grow_at
    state, times = decoder.start(tf.constant(TARGETS[:, :prefix]), beams, tf.constant(capacity))
    logits, times, place = [], [np.asarray(times)], np.full(3, beams - 1)
    for position in range(prefix, length):
        if position == grow_at:
            state = decoder.grow(state, tf.constant(length))
        ids = np.zeros([3, beams], np.int32)
        if position:
            ids[:] = 2 + TARGETS[:, position - 1 : position] * np.arange(3, 3 + beams) % 7
            ids[np.arange(3), place] = TARGETS[:, position - 1]
        found, taken, state = decoder.step(state, tf.constant(ids, tf.int32), tf.constant(position))
        logits.append(found.numpy()[np.arange(3), place])
        times.append(taken.numpy()[np.arange(3), place][:, None])
        if beams > 1:
            # Each hypothesis goes on from its neighbour: the one that carries the targets moves down by one.
            parents = np.tile((np.arange(beams) + 1) % beams, (3, 1))
            state = decoder.reorder(state, tf.constant(parents, tf.int32))
            place = (place - 1) % beams
    sides = ponder.get("decoder")
    expected = np.ones([3, length]) if sides is None else sides.ponder_times.numpy()
    return (full.numpy()[:, prefix:], expected), (np.stack(logits, axis=1), np.concatenate(times, axis=1))


def assert_same(full, cached, atol=2e-5):
    np.testing.assert_allclose(cached[0], full[0], rtol=1e-4, atol=atol)
    np.testing.assert_array_equal(cached[1], full[1])


@pytest.mark.parametrize("form", FORMS_AND_NONE)
def test_cached_logits_are_those_of_a_full_pass(rng, form):
    assert_same(*full_and_cached(universal(rng, form), prefix=1, beams=3, grow_at=3))


@pytest.mark.parametrize(("form", "transition"), [("basic", "fc"), ("frozen", "fc"), ("frozen", "sepconv")])
def test_cached_logits_of_a_language_model(rng, form, transition):
    model = universal(rng, form, language_model=True, transition=transition)
    assert_same(*full_and_cached(model, prefix=3, beams=2))


@pytest.mark.parametrize("signal", SIGNALS)
def test_cached_logits_with_every_signal_and_block(rng, signal):
    assert_same(*full_and_cached(universal(rng, "frozen", **SIGNALS[signal]), prefix=1, beams=2))


@pytest.mark.parametrize("name", tiny_models.TYPES)
def test_cached_logits_of_every_recurrence_type(rng, name):
    assert_same(*full_and_cached(universal(rng, **recurrent(name)), prefix=1, beams=2, grow_at=3))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS_AND_NONE)
@pytest.mark.parametrize("name", tiny_models.TYPES)
@pytest.mark.parametrize("language_model", [False, True], ids=["seq2seq", "language model"])
def test_cached_logits_of_every_recurrence_type_and_halting(rng, name, form, language_model):
    options = {**recurrent(name), "form": form, "language_model": language_model}
    assert_same(*full_and_cached(universal(rng, **options), prefix=3, beams=2))


def recurrent(name):
    """Arguments of `universal` for a recurrence type of `tiny_models`."""
    options = dict(tiny_models.TYPES[name])
    return {"form": options.pop("halting", "none"), **options}


@pytest.mark.slow
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("transition", ["fc", "sepconv"])
@pytest.mark.parametrize("form", FORMS_AND_NONE)
def test_cached_logits_with_all_combinations(rng, form, transition, signal):
    model = universal(rng, form, transition=transition, **SIGNALS[signal])
    for prefix, beams in ((0, 1), (3, 2)):
        assert_same(*full_and_cached(model, prefix, beams, grow_at=5))


@pytest.mark.parametrize("transition", ["fc", "sepconv"])
@pytest.mark.parametrize("model_class", [Transformer, TransformerLM])
def test_cached_logits_of_the_plain_transformer(rng, model_class, transition):
    model = randomized(model_class(11, max_steps=3, transition=transition, **SIZES), rng)
    assert_same(*full_and_cached(model, prefix=2, beams=3, grow_at=4))


@pytest.mark.parametrize("attention", [False, True])
def test_cached_logits_of_the_lstm(rng, attention):
    model = randomized(LSTMSeq2Seq(11, hidden_size=8, attention=attention), rng)
    assert_same(*full_and_cached(model))
    assert_same(*full_and_cached(model, prefix=2, beams=3))


@pytest.mark.parametrize("form", ["none", "frozen"])
def test_the_recomputed_decoder_gives_the_same(rng, form):
    model = universal(rng, form)
    decoder = RecomputedDecoder(model, model.encode({"inputs": tf.constant(INPUTS)}))
    assert_same(*full_and_cached(model, prefix=1, beams=2, grow_at=4, decoder=decoder))


@pytest.mark.parametrize(
    ("form", "policy", "options"),
    [
        ("none", "mixed_float16", {"max_relative_position": 2, "sru": True}),
        ("frozen", "mixed_bfloat16", {}),
    ],
)
def test_cached_logits_under_mixed_precision(rng, form, policy, options):
    model = universal(rng, form, dtype=policy, **options)
    full, cached = full_and_cached(model, prefix=1, beams=2)
    np.testing.assert_allclose(cached[0], full[0], rtol=0.05, atol=0.05 * np.abs(full[0]).max())


@pytest.mark.parametrize(("form", "options"), [("none", SIGNALS["relative and hard attention, SRU"]), ("frozen", {})])
def test_elastic_depth_is_that_of_the_cache_as_well(rng, form, options):
    model = universal(rng, form, **options)
    x = {"inputs": tf.constant(INPUTS), "targets": tf.constant(TARGETS)}
    full = model(x, max_steps=2).numpy()
    decoder = model.start_decoding(model.encode(x, max_steps=2), max_steps=2)
    state, _ = decoder.start(tf.zeros([3, 0], tf.int32), 1, tf.constant(6))
    for position in range(6):
        ids = TARGETS[:, position - 1 : position] if position else np.zeros([3, 1])
        logits, _, state = decoder.step(state, tf.constant(ids, tf.int32), tf.constant(position))
        np.testing.assert_allclose(logits[:, 0], full[:, position], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("form", "options"), [("none", {"transition": "sepconv"}), ("global", {"sru": True}), ("frozen", {})]
)
def test_rows_that_are_selected_go_on_as_if_they_had_been_alone(rng, form, options):
    model = universal(rng, form, **options)
    full = model({"inputs": INPUTS, "targets": TARGETS}).numpy()
    decoder = model.start_decoding(model.encode({"inputs": tf.constant(INPUTS)}))
    state, _ = decoder.start(tf.zeros([3, 0], tf.int32), 2, tf.constant(6))
    rows = np.arange(3)
    for position in range(6):
        if position == 2:
            rows = np.array([2, 0])
            state = decoder.select(state, tf.constant(rows))
        if position == 4:
            rows = np.array([0])
            state = decoder.select(state, tf.constant([1]))
        ids = np.repeat(TARGETS[rows, position - 1 : position] if position else np.zeros([len(rows), 1]), 2, axis=1)
        logits, _, state = decoder.step(state, tf.constant(ids, tf.int32), tf.constant(position))
        state = decoder.reorder(state, tf.constant([[1, 0]] * len(rows)))
        np.testing.assert_allclose(logits[:, 1], full[rows, position], rtol=1e-4, atol=2e-5)


def test_a_hypothesis_that_does_not_run_takes_no_step(rng):
    model = universal(rng, "frozen")
    decoder = model.start_decoding(model.encode({"inputs": tf.constant(INPUTS)}))
    state, _ = decoder.start(tf.zeros([3, 0], tf.int32), 1, tf.constant(3))
    _, _, state = decoder.step(state, tf.zeros([3, 1], tf.int32), tf.constant(0))
    _, times, _ = decoder.step(state, tf.constant([[4], [0], [5]]), tf.constant(1))
    assert times.numpy()[1, 0] == 0
    assert times.numpy()[[0, 2]].min() >= 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"halting": AdaptiveComputationTime("global", global_over="all")}, "global_over=prefix"),
        ({"signal": {"shift_by_step": True}, "step_length": "padded"}, "position_step_length=true"),
    ],
)
def test_what_reads_later_positions_is_refused_with_the_way_out(options, reason):
    model = UniversalTransformer(11, max_steps=3, **SIZES, **options)
    with pytest.raises(UserError, match=f"{reason}.*cached=False"):
        model.start_decoding(model.encode({"inputs": tf.constant(INPUTS)}))
    decoder = decoder_of(model, model.encode({"inputs": tf.constant(INPUTS)}), DecodingOptions(cached=False))
    assert isinstance(decoder, RecomputedDecoder)


def test_padding_may_only_be_produced_where_halting_counts_it(rng):
    """A position behind produced padding took no step, and its logits came from an output of zeros."""
    options = DecodingOptions(coupled_stop="best")
    memory = {"states": tf.zeros([1, 1, 8]), "mask": tf.ones([1, 1], tf.bool)}
    with pytest.raises(UserError, match="coupled_stop='best' may produce padding.*act_count_padding=True"):
        decoder_of(universal(rng, "frozen"), memory, options)
    counting = AdaptiveComputationTime("frozen", count_padding=True)
    for halting in ("none", counting):
        decoder_of(UniversalTransformer(11, halting=halting, **SIZES), memory, options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "options"), [("none", {}), ("basic", SIGNALS["relative and hard attention, SRU"]), ("frozen", {})]
)
def test_a_step_compiles_with_xla_and_gives_the_same(rng, form, options):
    model = universal(rng, form, **options)
    decoder = model.start_decoding(model.encode({"inputs": tf.constant(INPUTS)}))
    state, _ = decoder.start(tf.zeros([3, 0], tf.int32), 2, tf.constant(6))
    ids = tf.constant([[4, 5], [6, 7], [8, 9]])
    expected = decoder.step(state, ids, tf.constant(0))
    found = tf.function(decoder.step, jit_compile=True)(state, ids, tf.constant(0))
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)
