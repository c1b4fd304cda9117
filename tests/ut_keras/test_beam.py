"""Beam search against tensor2tensor's numbers, against all sequences, and against a plain one that never stops early.

Legend: B rows, K beam size, N positions, V vocabulary size.
"""

import functools
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import golden_files
from tests.table_decoder import TableDecoder, every_hypothesis, log_probability, numpy_beam, penalty
from ut_keras.decoding.beam import Beam
from ut_keras.decoding.hypotheses import Rows
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import best_of, search
from ut_keras.decoding.stages import run

GOLDEN = golden_files.load("beam_search")
NAMES = [f"{case}/{name.split('/')[0]}" for case in GOLDEN.cases() for name in GOLDEN.under(case) if name[0] == "b"]
FAR = -1e6  # tensor2tensor's scores below this stand for hypotheses that do not exist


def beam_search(table, limits, options, sums=False, function=search):
    """`search` from nothing over a table [B, N, V, V]."""
    batch = tf.shape(table)[0]
    limits = tf.broadcast_to(tf.cast(limits, tf.int32), [batch])
    return function(TableDecoder(table, sums), tf.zeros([batch, 0], tf.int32), tf.zeros_like(limits), limits, options)


def through_beam(decoder, prefix, lengths, limits, options):
    """As `search`, but also for a beam of one, which `search` leaves to greedy search."""
    step, rows = Beam(options), Rows(lengths, limits, lengths)
    return best_of(*run(decoder, step, prefix, rows), step, prefix, rows, options)


def hypotheses(found, row):
    """[(ids, score)] of the hypotheses of a row that exist."""
    pairs = zip(found.ids.numpy()[row], found.score.numpy()[row], strict=True)
    return [(tuple(ids[ids != 0].tolist()), float(score)) for ids, score in pairs if score > -np.inf]


def _slow_but(name):
    return name if "alpha0.6" in name else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [_slow_but(name) for name in dict.fromkeys(NAMES)])
def test_tensor2tensors_hypotheses_and_scores(name):
    case, setting = name.split("/")
    beam, alpha, stop = (float(number) for number in re.findall(r"[0-9.]+", setting))
    meta = GOLDEN.meta[int(case[-2:])]
    coupled = "best" if stop else "all"
    options = DecodingOptions(beam_size=int(beam), n_best=int(beam), alpha=alpha, coupled_stop=coupled)
    found = beam_search(GOLDEN[f"{case}/table"], meta["decode_length"], options, meta["kind"] == "prefix", through_beam)
    expected = GOLDEN[f"{name}/scores"]
    real = expected > FAR
    np.testing.assert_allclose(found.score.numpy()[real], expected[real], rtol=1e-4, atol=1e-5)
    ids = GOLDEN[f"{name}/ids"][..., 1:]
    width = max(ids.shape[2], found.ids.shape[2])
    padded = [np.pad(values, [[0, 0], [0, 0], [0, width - values.shape[2]]]) for values in (found.ids.numpy(), ids)]
    np.testing.assert_array_equal(padded[0][real], padded[1][real])


@functools.cache
def compiled(sums=False, **options):
    """The search over tables [B, 4, 4, 4] with limits [B], as one compiled function."""
    options = DecodingOptions(**options)

    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4, 4]), tf.TensorSpec([None], tf.int32)])
    def run_(table, limits):
        return beam_search(table, limits, options, sums)

    return run_


TABLES = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).normal(0, 2, [3, 4, 4, 4]))
# Few different values: many sequences have one probability.
TIED = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).integers(0, 2, [3, 4, 4, 4]))
LIMITS = st.lists(st.integers(1, 4), min_size=3, max_size=3)
SETTINGS = settings(max_examples=20, deadline=None, derandomize=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("n_best", [1, 5, 16])
@SETTINGS
@given(tables=TABLES | TIED, limits=LIMITS)
def test_a_beam_that_holds_everything_is_exhaustive_search(alpha, n_best, tables, limits):
    """U91 among others: early stopping lost the best hypothesis where long ones were favoured."""
    tables = tables.astype("float32")
    found = compiled(True, beam_size=16, n_best=n_best, alpha=alpha)(tables, limits)
    for row, limit in enumerate(limits):
        ended, cut = every_hypothesis(tables[row], limit, alpha, sums=True)
        expected = (ended + cut)[:n_best]
        ours = hypotheses(found, row)
        np.testing.assert_allclose([score for _, score in ours], [score for _, score in expected], rtol=1e-4, atol=1e-5)
        scores = dict(ended + cut)
        assert len({ids for ids, _ in ours}) == len(ours)
        np.testing.assert_allclose([score for _, score in ours], [scores[ids] for ids, _ in ours], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(("beam_size", "n_best"), [(2, 1), (2, 2), (3, 2), (5, 5)])
@SETTINGS
@given(tables=TABLES, limits=LIMITS)
def test_stopping_early_loses_nothing(alpha, beam_size, n_best, tables, limits):
    tables = tables.astype("float32")
    found = compiled(True, beam_size=beam_size, n_best=n_best, alpha=alpha)(tables, limits)
    for row, limit in enumerate(limits):
        ended, cut = numpy_beam(tables[row], limit, beam_size, alpha, sums=True)
        expected = (ended + cut)[:n_best]
        ours = hypotheses(found, row)
        assert [ids for ids, _ in ours] == [ids for ids, _ in expected]
        np.testing.assert_allclose([score for _, score in ours], [score for _, score in expected], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beam_size", [2, 3, 5])
@SETTINGS
@given(tables=TIED, limits=LIMITS)
def test_a_small_beam_gives_no_score_that_the_table_does_not_give(beam_size, tables, limits):
    tables = tables.astype("float32")
    found = compiled(True, beam_size=beam_size, n_best=beam_size, alpha=0.6)(tables, limits)
    for row, limit in enumerate(limits):
        ours = hypotheses(found, row)
        for (ids, score), total in zip(ours, found.log_probability.numpy()[row], strict=False):
            assert 0 < len(ids) <= limit and set(ids[:-1]) <= {2, 3}
            expected = log_probability(tables[row], ids, sums=True)
            np.testing.assert_allclose(
                [total, score], [expected, expected / penalty(len(ids), 0.6)], rtol=1e-4, atol=1e-5
            )
        ended = [ids[-1] == 1 for ids, _ in ours]
        assert ended == sorted(ended, reverse=True)
        for group in (True, False):
            scores = [score for (_, score), end in zip(ours, ended, strict=True) if end == group]
            assert scores == sorted(scores, reverse=True)


@SETTINGS
@given(tables=TABLES | TIED, limits=LIMITS)
def test_a_row_is_searched_alone_as_in_a_batch(tables, limits):
    """U89: lengths were counted once per batch member."""
    tables = tables.astype("float32")
    function = compiled(True, beam_size=3, n_best=3, alpha=0.6)
    together = function(tables, limits)
    for row, limit in enumerate(limits):
        alone = function(tables[row : row + 1], [limit])
        width = alone.ids.shape[2]
        np.testing.assert_array_equal(alone.ids[0], together.ids[row, :, :width])
        np.testing.assert_allclose(alone.score[0], together.score[row], rtol=1e-5)
        np.testing.assert_array_equal(alone.ponder_times[0], together.ponder_times[row, :, :width])


@SETTINGS
@given(tables=TABLES | TIED, limits=LIMITS)
def test_a_beam_of_one_is_greedy_search(tables, limits):
    """Whatever alpha is: the most probable id each time, of equal ones the lowest, up to the first end token."""
    tables = tables.astype("float32")
    found = compiled(True, beam_size=1, alpha=1.0)(tables, limits)
    for row, limit in enumerate(limits):
        ids = []
        while len(ids) < limit and (not ids or ids[-1] != 1):
            logits = tables[row, len(ids), sum(ids) % 4]
            ids.append(1 + int(np.argmax(logits[1:])))
        ((ours, score),) = hypotheses(found, row)
        assert list(ours) == ids
        np.testing.assert_allclose(score, log_probability(tables[row], ids, sums=True), rtol=1e-4, atol=1e-5)


def chain(*probabilities):
    """A table in which id 2 follows with these probabilities at positions 0, 1, ..., and the end token otherwise."""
    table = np.full([1, len(probabilities), 3, 3], -np.inf, "float32")
    for position, probability in enumerate(probabilities):
        with np.errstate(divide="ignore"):
            table[:, position, :, 2], table[:, position, :, 1] = np.log(probability), np.log1p(-probability)
    return table


def test_alpha_changes_the_winner():
    """U88: the penalty was that of the current step for all, so that it never changed the ranking."""
    table = chain(0.48, 0.95, 0.95, 0.95, 0.0)
    ids = {
        alpha: beam_search(table, 5, DecodingOptions(beam_size=3, alpha=alpha)).ids.numpy()[0, 0]
        for alpha in (0.0, 0.6)
    }
    assert np.trim_zeros(ids[0.0]).tolist() == [1]
    assert np.trim_zeros(ids[0.6]).tolist() == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_prompt_counts_neither_for_the_score_nor_for_the_length(alpha):
    """U89: lengths were counted with the prompt."""
    table = chain(0.48, 0.95, 0.95, 0.95, 0.0)
    options = DecodingOptions(beam_size=3, n_best=3, alpha=alpha)
    bare = beam_search(np.tile(table, [5, 1, 1, 1]), 5, options)
    # The same five positions behind two that are given.
    late = np.concatenate([table[:, :2], table], axis=1)
    lengths = tf.fill([5], 2)
    found = search(TableDecoder(np.tile(late, [5, 1, 1, 1])), tf.fill([5, 2], 2), lengths, lengths + 5, options)
    np.testing.assert_array_equal(found.ids[:, :, 2:], bare.ids)
    np.testing.assert_allclose(found.score, bare.score, rtol=1e-6)
    np.testing.assert_allclose(found.score[3], beam_search(table, 5, options).score[0], rtol=1e-6)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_beam_larger_than_the_vocabulary(limit):
    """U92: beam 8, vocabulary 4 crashed."""
    table = np.zeros([2, 5, 4, 4], "float32")
    found = beam_search(table, limit, DecodingOptions(beam_size=8, n_best=8))
    count = sum(2**n for n in range(limit)) + 2**limit
    for row in range(2):
        assert len(set(hypotheses(found, row))) == min(count, 8)
    assert np.all(np.isneginf(found.score.numpy()[:, count:])) and np.all(found.ids.numpy()[:, count:] == 0)


def test_end_token_at_once_ends_the_search():
    table = np.full([2, 5, 4, 4], -np.inf, "float32")
    table[..., 1] = 0.0
    decoder, zeros = TableDecoder(table), tf.zeros([2], tf.int32)
    found = search(decoder, tf.zeros([2, 0], tf.int32), zeros, zeros + 5, DecodingOptions(beam_size=3, n_best=3))
    np.testing.assert_array_equal(found.ids, [[[1], [0], [0]]] * 2)
    np.testing.assert_array_equal(found.score, [[0.0, -np.inf, -np.inf]] * 2)
    assert decoder.rows == [2]


def test_without_an_end_token_the_hypotheses_are_cut_at_the_limit_and_scored_with_its_penalty():
    table = np.full([1, 5, 4, 4], -np.inf, "float32")
    table[..., 2], table[..., 3] = np.log(0.75), np.log(0.25)
    found = beam_search(table, 3, DecodingOptions(beam_size=2, n_best=2))
    np.testing.assert_array_equal(found.ids, [[[2, 2, 2], [2, 2, 3]]])
    expected = np.log([0.75**3, 0.75**2 * 0.25])
    np.testing.assert_allclose(found.log_probability[0], expected, rtol=1e-6)
    np.testing.assert_allclose(found.score[0], expected / (8 / 6) ** 0.6, rtol=1e-6)


def test_unfinished_hypotheses_stand_behind_finished_ones_whatever_their_score():
    found = beam_search(chain(0.9, 0.9, 0.9), 3, DecodingOptions(beam_size=4, n_best=4, alpha=0.0))
    np.testing.assert_array_equal(found.ids, [[[1, 0, 0], [2, 1, 0], [2, 2, 1], [2, 2, 2]]])
    np.testing.assert_allclose(np.exp(found.score[0]), [0.1, 0.09, 0.081, 0.729], rtol=1e-5)


def test_of_equal_hypotheses_the_earlier_end_then_the_lower_id_wins():
    found = beam_search(np.zeros([1, 3, 4, 4], "float32"), 2, DecodingOptions(beam_size=4, n_best=4, alpha=0.0))
    # log(1/4) at position 0, then log(1/16) twice, then cut ones.
    np.testing.assert_array_equal(found.ids, [[[1, 0], [2, 1], [3, 1], [2, 2]]])
    # A row whose bound is equal to what it has stops: nothing better can come.
    decoder = TableDecoder(chain(0.5, 1.0, 0.0))
    zeros = tf.zeros([1], tf.int32)
    found = search(decoder, tf.zeros([1, 0], tf.int32), zeros, zeros + 3, DecodingOptions(beam_size=2, alpha=0.0))
    np.testing.assert_array_equal(found.ids, [[[1]]])
    assert len(decoder.rows) == 1


def test_a_row_stops_as_soon_as_nothing_better_can_come():
    """The bound takes the row's own limit: with a penalty, a longer one lets more come."""
    table = np.tile(chain(0.5, 0.5, 0.5, 0.5, 0.5, 0.5), [2, 1, 1, 1])
    steps = {}
    for alpha in (0.0, 1.0):
        for limit in (2, 6):
            decoder, zeros = TableDecoder(table), tf.zeros([2], tf.int32)
            options = DecodingOptions(beam_size=2, alpha=alpha)
            search(decoder, tf.zeros([2, 0], tf.int32), zeros, zeros + limit, options)
            steps[alpha, limit] = len(decoder.rows)
    # alpha 1: after one id the bound is log(0.5) * 6 / 11, above the finished log(0.5); after two it is twice that.
    assert steps == {(0.0, 2): 1, (0.0, 6): 1, (1.0, 2): 2, (1.0, 6): 2}


def test_ponder_times_are_those_of_each_hypothesis_own_ids(rng):
    """A position's ponder time in the table is 1 + the id before it, whatever places the hypotheses had."""
    found = beam_search(rng.normal(0, 0.3, [4, 6, 5, 5]), [6, 5, 3, 6], DecodingOptions(beam_size=4, n_best=4))
    ids = found.ids.numpy()
    expected = np.where(ids, 1 + np.pad(ids, [[0, 0], [0, 0], [1, 0]])[..., :-1], 0)
    np.testing.assert_array_equal(found.ponder_times, expected)
    assert len({tuple(row) for row in ids[0].tolist()}) == 4


@pytest.mark.parametrize("coupled", ["best", "all"])
def test_coupled_rows_end_together(coupled):
    """tensor2tensor's rule: a row that has its answer goes on while another one has not."""
    quick, slow = chain(0.01, 0.5, 0.5, 0.5, 0.5), chain(0.99, 0.99, 0.99, 0.99, 0.5)
    for tables, steps in ((quick, {"best": 1, "all": 3}), (np.concatenate([quick, slow]), {"best": 5, "all": 5})):
        decoder, zeros = TableDecoder(tables), tf.zeros([len(tables)], tf.int32)
        options = DecodingOptions(beam_size=2, alpha=0.0, coupled_stop=coupled)
        search(decoder, tf.zeros([len(tables), 0], tf.int32), zeros, zeros + 5, options)
        assert len(decoder.rows) == steps[coupled]
