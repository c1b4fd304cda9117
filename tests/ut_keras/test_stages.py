"""The loop of a search: what it leaves out, when it grows, how often it is traced.

Legend: B rows, K beam size, N positions, P prefix length, V vocabulary size.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.table_decoder import TableDecoder
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import search

GREEDY = DecodingOptions()
BEAM = DecodingOptions(beam_size=3, n_best=3)
SAMPLES = DecodingOptions(temperature=1.0, n_best=2)


def counter(ends, size=60):
    """[B, 1, V, V] in which row b counts 2, 3, 4, ... and ends in place of number `ends[b]`."""
    table = np.full([len(ends), 1, size, size], -9.0, "float32")
    for row, end in enumerate(ends):
        for last in range(size - 1):
            following = max(last + 1, 2)
            table[row, 0, last, 1 if following == end else following] = 9.0
    return table


def given(prefix, limits, table, options=GREEDY, **kwargs):
    """(`Hypotheses`, the decoder) of rows with prefixes [B, P]."""
    prefix = tf.constant(prefix, tf.int32)
    lengths = tf.reduce_sum(tf.cast(prefix != 0, tf.int32), axis=1)
    decoder = TableDecoder(table)
    return search(decoder, prefix, lengths, tf.constant(limits), options, **kwargs), decoder


def test_rows_that_have_ended_cost_nothing():
    """Rows go when fewer than three quarters of those at work still run."""
    found, decoder = given(np.zeros([5, 0]), [40] * 5, counter([2, 3, 5, 5, 12]))
    assert decoder.rows == [5] * 2 + [3] * 2 + [1] * 7
    lengths = np.count_nonzero(found.ids[:, 0], axis=1)
    assert lengths.tolist() == [1, 2, 4, 4, 11]
    np.testing.assert_array_equal(found.ids[4, 0], [*range(2, 12), 1])


def test_capacity_doubles_until_the_rows_that_run_have_room():
    found, decoder = given(np.zeros([2, 0]), [55, 900], counter([99, 50], size=130))
    # The longer row ends at place 49; the other one is cut at 55.
    assert decoder.capacities == [32, 64]
    assert np.count_nonzero(found.ids[:, 0], axis=1).tolist() == [55, 49]
    _, decoder = given(np.zeros([1, 0]), [70], counter([999], size=130))
    assert decoder.capacities == [32, 64, 128]
    _, decoder = given(np.zeros([1, 0]), [7], counter([999]))
    assert decoder.capacities == [32]


@pytest.mark.parametrize("options", [GREEDY, BEAM, SAMPLES], ids=["greedy", "beam", "samples"])
def test_rows_with_nothing_to_search_never_run_and_come_back_as_they_are(options):
    prefix = [[2, 3, 0], [4, 5, 6], [2, 1, 0], [0, 0, 0], [2, 0, 0]]
    found, decoder = given(prefix, [9, 3, 9, 0, 1], counter([5] * 5), options)
    assert set(decoder.rows) == {1}
    assert found.ids[1, 0, :3].numpy().tolist() == [4, 5, 6]
    assert found.ids[2, 0, :3].numpy().tolist() == [2, 1, 0]
    for row in range(1, 5):
        np.testing.assert_array_equal(np.trim_zeros(found.ids[row, 0]), np.trim_zeros(np.array(prefix[row])))
        np.testing.assert_array_equal(found.ids[row, 1:], 0 * found.ids[row, 1:])
        np.testing.assert_array_equal(found.ponder_times[row], 0 * found.ponder_times[row])
        assert found.log_probability[row].numpy().tolist() == [0.0] + [-np.inf] * (options.n_best - 1)
        assert found.score[row].numpy().tolist() == found.log_probability[row].numpy().tolist()


def test_what_all_running_rows_are_given_is_read_at_once():
    prefix = [[2, 3, 4, 5], [3, 4, 5, 0], [7, 0, 0, 0]]
    found, decoder = given(prefix, [8, 8, 1], counter([8, 8, 8]))
    # The last row has no room behind its prefix; the others share three ids.
    assert np.shape(decoder.prefixes[0]) == (3, 3)
    assert decoder.prefixes[0][:2] == [[2, 3, 4], [3, 4, 5]] and 0 not in decoder.prefixes[0][2]
    assert len(decoder.rows) == 8 - 3 - 1
    np.testing.assert_array_equal(found.ids[:2, 0], [[2, 3, 4, 5, 6, 7, 1], [3, 4, 5, 6, 7, 1, 0]])


@pytest.mark.parametrize("options", [GREEDY, BEAM, SAMPLES], ids=["greedy", "beam", "samples"])
def test_rows_go_on_from_prefixes_of_their_own(options, rng):
    """The same as each row alone, ponder times of forced positions included."""
    table = rng.normal(0, 1, [4, 9, 6, 6]).astype("float32")
    prefix = np.array([[4, 0, 0, 0], [3, 3, 1, 3], [0, 0, 0, 0], [5, 2, 0, 0]], np.int32)
    limits = [6, 9, 4, 9]
    together, _ = given(prefix, limits, table, options)
    for row in range(4):
        length = np.count_nonzero(prefix[row])
        alone, _ = given(
            prefix[row : row + 1, :length], limits[row : row + 1], table[row : row + 1], options, keys=[row]
        )
        width = alone.ids.shape[2]
        np.testing.assert_array_equal(alone.ids[0], together.ids[row, :, :width])
        np.testing.assert_array_equal(together.ids[row, :, width:], 0 * together.ids[row, :, width:])
        np.testing.assert_allclose(alone.score[0], together.score[row], rtol=1e-5)
        np.testing.assert_array_equal(alone.ponder_times[0], together.ponder_times[row, :, :width])
    ids = together.ids.numpy()
    assert (ids[1, :, :4] == prefix[1]).all()
    expected = np.where(ids, 1 + np.pad(ids, [[0, 0], [0, 0], [1, 0]])[..., :-1], 0)
    np.testing.assert_array_equal(together.ponder_times, expected)


def test_end_token_inside_of_a_prefix_is_an_id_like_others():
    found, _ = given([[3, 1, 5]], [9], counter([7]))
    np.testing.assert_array_equal(found.ids, [[[3, 1, 5, 6, 1]]])


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(GREEDY, id="greedy", marks=pytest.mark.slow),
        pytest.param(BEAM, id="beam"),
        pytest.param(SAMPLES, id="samples", marks=pytest.mark.slow),
    ],
)
def test_one_trace_serves_all_shapes_and_gives_what_runs_eagerly(options, rng):
    specs = [tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 9, 6, 6])]

    @tf.function(input_signature=specs)
    def compiled(prefix, limits, table):
        lengths = tf.reduce_sum(tf.cast(prefix != 0, tf.int32), axis=1)
        return search(TableDecoder(table), prefix, lengths, limits, options)

    for batch, width, limit in ((1, 0, 5), (4, 3, 45), (3, 1, 2), (0, 2, 5), (2, 4, 100)):
        table = rng.normal(0, 1, [batch, 9, 6, 6]).astype("float32")
        table[..., 1] -= 2
        prefix = rng.integers(2, 6, [batch, width]) * (rng.random([batch, 1]) < 0.7)
        limits = rng.integers(0, limit, [batch])
        found = compiled(prefix.astype("int32"), limits.astype("int32"), table)
        if batch:
            eager, _ = given(prefix, limits.astype("int32"), table, options)
            np.testing.assert_array_equal(found.ids, eager.ids)
            np.testing.assert_allclose(found.score, eager.score, rtol=1e-4)
            np.testing.assert_array_equal(found.ponder_times, eager.ponder_times)
        assert found.ids.shape[:2] == (batch, options.n_best)
    assert compiled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("options", [GREEDY, BEAM, SAMPLES], ids=["greedy", "beam", "samples"])
def test_without_stages_there_is_one_loop_that_finds_the_same(options, rng):
    table = rng.normal(0, 1, [4, 9, 6, 6]).astype("float32")
    prefix = np.array([[4, 0, 0], [3, 3, 3], [0, 0, 0], [5, 2, 0]], np.int32)
    limits = [40, 9, 4, 2]
    staged, _ = given(prefix, limits, table, options)
    plain, decoder = given(prefix, limits, table, options, stages=False, longest=44)
    assert decoder.capacities == [44] and set(decoder.rows) == {4} and plain.ids.shape[2] == 44
    width = staged.ids.shape[2]
    np.testing.assert_array_equal(plain.ids[..., :width], staged.ids)
    np.testing.assert_allclose(plain.score, staged.score, rtol=1e-5)
    np.testing.assert_array_equal(plain.ponder_times[..., :width], staged.ponder_times)


@pytest.mark.slow
@pytest.mark.parametrize("options", [GREEDY, BEAM, SAMPLES], ids=["greedy", "beam", "samples"])
def test_without_stages_it_compiles_with_xla(options, rng):
    table = rng.normal(0, 1, [4, 9, 6, 6]).astype("float32")
    prefix = np.array([[4, 0, 0], [3, 3, 3], [0, 0, 0], [5, 2, 0]], np.int32)
    limits = [12, 9, 4, 2]

    @tf.function(jit_compile=True)
    def compiled(prefix, limits, table):
        lengths = tf.reduce_sum(tf.cast(prefix != 0, tf.int32), axis=1)
        return search(TableDecoder(table), prefix, lengths, limits, options, stages=False, longest=12)

    found = compiled(tf.constant(prefix), tf.constant(limits), tf.constant(table))
    expected, _ = given(prefix, limits, table, options)
    width = expected.ids.shape[2]
    np.testing.assert_array_equal(found.ids[..., :width], expected.ids)
    np.testing.assert_allclose(found.score, expected.score, rtol=1e-4)
    np.testing.assert_array_equal(found.ponder_times[..., :width], expected.ponder_times)
