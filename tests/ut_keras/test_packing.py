"""Packed rows, and conditional compute: the same numbers as the dense loop, for less."""

import numpy as np
import pytest
import tensorflow as tf

from tests.benchmarks.planned_halting import PlannedHalting
from ut_keras.layers.halting import FORMS, AdaptiveComputationTime
from ut_keras.layers.packing import PackedRows
from ut_keras.layers.recurrence import UniversalRecurrence

MASK = np.array([[True, True, False, False], [True, True, True, True], [False] * 4, [True, False, False, False]])
X = np.random.default_rng(0).normal(size=[4, 4, 6]).astype("float32")


def test_packed_rows_are_the_real_positions_in_order():
    packed = PackedRows(tf.constant(MASK), least=5)
    rows = packed.pack(tf.constant(X))[:, 0]
    assert len(rows) == 10  # 7, rounded up
    np.testing.assert_array_equal(rows[:7], X[MASK])
    np.testing.assert_array_equal(rows[7:], X[3, :1].repeat(3, axis=0))
    restored = packed.restore(packed.pack(tf.constant(X)), -1.0).numpy()
    np.testing.assert_array_equal(restored[MASK], X[MASK])
    assert (restored[~MASK] == -1.0).all()


def test_packed_rows_take_few_numbers_and_little_more_room():
    def size(count):
        packed = PackedRows(tf.sequence_mask([count], 600))
        return int(tf.shape(packed.pack(tf.zeros([1, 600, 1])))[0])

    expected = {1: 8, 8: 8, 9: 16, 121: 128, 129: 144, 255: 256, 257: 288, 500: 512, 513: 576, 600: 640}
    assert {count: size(count) for count in expected} == expected


def test_active_rows_are_spread_by_row_and_come_back():
    packed = PackedRows(tf.constant(MASK), least=1)
    running = tf.constant([[True], [False], [False], [True], [True], [False], [True]])
    active = packed.active(running)
    rows = active.chosen(packed.pack(tf.constant(X)))
    np.testing.assert_array_equal(rows[:, 0], X[MASK][running[:, 0]])
    spread = active.spread(rows).numpy()
    assert spread.shape == (4, 2, 6)  # the second row has two that run
    np.testing.assert_array_equal(spread[0, 0], X[0, 0])
    np.testing.assert_array_equal(spread[1], X[1, 1:3])
    np.testing.assert_array_equal(spread[3, 0], X[3, 0])
    np.testing.assert_array_equal(active.collect(tf.constant(spread)), rows)
    merged = active.merge(packed.pack(tf.constant(X)), rows + 1.0).numpy()
    np.testing.assert_allclose(merged[:, 0], X[MASK] + running.numpy(), rtol=1e-6)


def pair(form, rng, causal=False, **options):
    """The same recurrence twice: conditional and dense, with positions that halt at different steps."""
    halting = form if form == "none" else AdaptiveComputationTime(form, bias_initializer=-1.0)
    layers = []
    for conditional in (True, False):
        layer = UniversalRecurrence(
            5, halting, num_heads=2, filter_size=12, causal=causal, conditional=conditional, **options
        )
        layer.build((None, None, 6))
        layers.append(layer)
    layers[0].set_weights([0.6 * rng.normal(size=weight.shape) for weight in layers[0].weights])
    if form not in ("none", "random"):
        layers[0].halting.set_weights([np.linspace(-1.5, 1.5, 6)[:, None], np.array([-2.0])])
    layers[1].set_weights(layers[0].get_weights())
    return layers


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("form", ["none", *FORMS])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_conditional_compute_gives_the_numbers_of_the_dense_loop(rng, form, causal, norm):
    conditional, dense = pair(form, rng, causal, norm=norm)
    x, mask = tf.constant(X), tf.constant(MASK)
    found, ponder = conditional(x, mask)
    expected, expected_ponder = dense(x, mask)
    np.testing.assert_allclose(found[MASK], expected[MASK], rtol=1e-4, atol=1e-5)
    for a, b in zip(ponder, expected_ponder, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    if form != "none":
        assert len(np.unique(ponder.ponder_times[MASK])) > 1 or form == "global"


@pytest.mark.parametrize(
    "options",
    [
        {"signal": {"shift_by_step": True}},
        {"signal": {"step": "learned", "combine": "concat"}},
        {"remat": True},
        {"hard_attention_k": 2},
    ],
)
def test_conditional_compute_with_every_signal_and_attention_and_a_memory(rng, options):
    conditional, dense = pair("frozen", rng, causal=True, cross_attention=True, **options)
    memory, memory_mask = tf.constant(X[:, ::-1]), tf.constant(MASK[::-1])
    arguments = {"memory": memory, "memory_mask": memory_mask}
    found, expected = (layer(tf.constant(X), tf.constant(MASK), **arguments)[0] for layer in (conditional, dense))
    np.testing.assert_allclose(found[MASK], expected[MASK], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["none", "global", "frozen"])
def test_padding_inside_of_a_decoders_row_is_read_by_those_behind_it(rng, form):
    """Nothing masks it there; packed, some other position stood in its place."""
    conditional, dense = pair(form, rng, causal=True)
    mask = np.array([[True, False, True, False], [False, False, True, True], [False] * 4, [False, True, False, True]])
    (found, ponder), (expected, expected_ponder) = (
        layer(tf.constant(X), tf.constant(mask)) for layer in (conditional, dense)
    )
    np.testing.assert_allclose(found[mask], expected[mask], rtol=1e-4, atol=1e-5)
    for a, b in zip(ponder, expected_ponder, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_two_blocks_in_a_step_leave_out_padding_alone(rng):
    conditional, dense = pair("frozen", rng, num_blocks=2)
    found, expected = (layer(tf.constant(X), tf.constant(MASK))[0] for layer in (conditional, dense))
    np.testing.assert_allclose(found[MASK], expected[MASK], rtol=1e-4, atol=1e-5)


def test_nothing_real_is_finite():
    layer = UniversalRecurrence(3, "frozen", num_heads=2, filter_size=12)
    output, ponder = layer(tf.constant(X), tf.zeros([4, 4], tf.bool))
    assert np.isfinite(output).all()
    assert not ponder.ponder_times.numpy().any()


def test_gradients_at_inference_are_those_of_the_dense_loop(rng):
    conditional, dense = pair("frozen", rng)
    gradients = []
    for layer in (conditional, dense):
        with tf.GradientTape() as tape:
            output = layer(tf.constant(X), tf.constant(MASK))[0]
            total = tf.reduce_sum(tf.boolean_mask(output, MASK) ** 2)
        gradients.append(tape.gradient(total, [variable.value for variable in layer.trainable_variables]))
    for a, b in zip(*gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def transition_rows(layer, x, mask, monkeypatch):
    """How many rows each step sends through the transition, and how many queries through attention."""
    rows, queries = [], []
    ffn, attention = layer.blocks[0].ffn, layer.blocks[0].self_attention
    transform, join = ffn.transform, attention.attend

    def counted(x, *rest):
        rows.append(int(np.prod(x.shape[:2])))
        return transform(x, *rest)

    def attended(*arguments):
        result = join(*arguments)
        queries.append(int(np.prod(result.shape[:2])))
        return result

    monkeypatch.setattr(ffn, "transform", counted)
    monkeypatch.setattr(attention, "attend", attended)
    layer(x, mask)
    return rows, queries


def test_halted_positions_and_padding_cost_no_query_and_no_transition(monkeypatch):
    plan = np.array([[1, 3, 1, 1], [2, 1, 1, 3], [1, 1, 1, 1], [2, 1, 1, 1]])
    layer = UniversalRecurrence(5, "frozen", num_heads=2, filter_size=12)
    layer.halting = PlannedHalting(plan)
    layer.build((None, None, 6))
    monkeypatch.setattr(PackedRows.__init__, "__defaults__", (2,))
    rows, queries = transition_rows(layer, tf.constant(X), tf.constant(MASK), monkeypatch)
    assert rows == [8, 4, 2]
    assert queries == [8, 4, 2]


@pytest.mark.parametrize(
    "options", [{"conditional": False}, {"transition": "sepconv"}, {"max_relative_position": 2}, {"sru": True}]
)
def test_the_dense_loop_runs_where_it_has_to(monkeypatch, options):
    layer = UniversalRecurrence(2, "none", num_heads=2, filter_size=12, **options)
    layer.build((None, None, 6))
    rows, _ = transition_rows(layer, tf.constant(X), tf.constant(MASK), monkeypatch)
    assert rows == [16, 16]


@pytest.mark.slow
def test_under_xla_the_dense_loop_runs(rng):
    conditional, _ = pair("frozen", rng)
    compiled = tf.function(lambda x, mask: conditional(x, mask)[0], jit_compile=True)
    found = compiled(tf.constant(X), tf.constant(MASK))
    np.testing.assert_allclose(
        found[MASK], conditional(tf.constant(X), tf.constant(MASK))[0][MASK], rtol=1e-4, atol=1e-5
    )
