"""Greedy search against models whose answer is known, through the decoder that has no cache.

Legend: B rows, L input length, V vocabulary size.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.scripted import Copier, compile_search
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import decoder_of, search

_V = 6
INPUTS = np.array([[3, 4, 5, 1], [2, 1, 0, 0], [5, 5, 1, 0]], np.int32)


class Chain(keras.Model):
    """A language model: the next id depends on the last one through a table [V, V] of logits; id 0 starts."""

    def __init__(self, table):
        super().__init__()
        self.table = tf.constant(table, tf.float32)
        self.calls = 0

    def encode(self, x, max_steps=None):
        return None

    def decode(self, targets, memory, max_steps=None, last=False):
        self.calls += 1
        return tf.gather(self.table, tf.pad(targets, [[0, 0], [1, 0]])[:, :-1])


def copied(inputs, limits, model=None, options=DecodingOptions()):  # noqa: B008 (it is frozen)
    """`Hypotheses` for the inputs [B, L], each of n = 1."""
    model = model or Copier(_V)
    inputs = tf.constant(inputs)
    zeros = tf.zeros(len(inputs), tf.int32)
    decoder = decoder_of(model, model.encode({"inputs": inputs}), options)
    return search(decoder, tf.zeros([len(inputs), 0], tf.int32), zeros, zeros + limits, options)


def continued(table, prefix, limit):
    """(`Hypotheses`, the model) for prefixes [B, P]."""
    model, prefix = Chain(table), tf.constant(prefix)
    lengths = tf.reduce_sum(tf.cast(prefix != 0, tf.int32), axis=1)
    limits = tf.fill([len(prefix)], limit)
    return search(decoder_of(model, None, DecodingOptions()), prefix, lengths, limits, DecodingOptions()), model


def test_each_row_ends_with_its_own_end_token():
    np.testing.assert_array_equal(copied(INPUTS, 9).ids[:, 0], INPUTS)


def test_log_probability_is_summed_to_the_end_token():
    found = copied(INPUTS, 9)
    one = 1.0 - np.log(np.e + 5.0)
    np.testing.assert_allclose(found.log_probability, [[4 * one], [2 * one], [3 * one]], rtol=1e-6)
    np.testing.assert_array_equal(found.score, found.log_probability)


def test_a_row_alone_and_in_a_batch_gives_the_same():
    together = copied(INPUTS, 9)
    for row in range(3):
        alone = copied(INPUTS[row : row + 1], 9)
        length = alone.ids.shape[2]
        np.testing.assert_array_equal(alone.ids[0], together.ids[row, :, :length])
        np.testing.assert_array_equal(together.ids[row, 0, length:], 0)
        np.testing.assert_allclose(alone.log_probability[0], together.log_probability[row], rtol=1e-6)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_every_row_obeys_its_own_limit(beam_size):
    """U93, U96: limits were hard coded, or ignored without a word."""
    found = copied(INPUTS, [2, 9, 0], options=DecodingOptions(beam_size=beam_size, alpha=0.0))
    assert found.ids.shape[2] <= 9
    assert np.count_nonzero(found.ids[:, 0], axis=1).max() <= 9
    if beam_size == 1:
        np.testing.assert_array_equal(found.ids[:, 0], [[3, 4], [2, 1], [0, 0]])
    assert np.all(np.count_nonzero(found.ids[0], axis=1) <= 2) and not np.any(found.ids[2])


def test_no_extra_and_much_extra_length():
    """U93: 0 and 300 ids more than the input, where no end token comes."""
    table = np.full([_V, _V], -9.0)
    table[:, 2] = 9.0
    run = compile_search(Chain(table), ["targets"])
    for extra in (0, 300):
        found = run({"targets": tf.constant([[3, 3, 3, 3]])}, tf.constant([4 + extra]))
        np.testing.assert_array_equal(found.ids, [[[3] * 4 + [2] * extra]])


def test_search_stops_when_all_rows_have_ended():
    assert copied(INPUTS[1:2], 1000).ids.shape == (1, 1, 2)


def test_one_trace_serves_every_batch_size_and_length_and_the_encoder_runs_once():
    model = Copier(_V)
    run = compile_search(model)
    for count, (batch, length) in enumerate(((1, 2), (3, 4), (2, 7)), 1):
        run({"inputs": tf.ones([batch, length], tf.int32)}, tf.fill([batch], length))
        assert float(model.encoded) == count
    assert run.experimental_get_tracing_count() == 1


def test_padding_is_never_chosen():
    table = [[9.0, 0.0, 5.0], [0.0, 0.0, 0.0], [9.0, 4.0, 1.0]]
    found, _ = continued(table, np.zeros([2, 0], np.int32), 5)
    np.testing.assert_array_equal(found.ids[:, 0], [[2, 1], [2, 1]])


def test_coupled_rows_run_to_their_limit_and_padding_is_an_id():
    table = [[0.0, 0.0, 5.0], [9.0, 0.0, 0.0], [0.0, 4.0, 1.0]]
    options, prefix = DecodingOptions(coupled_stop="best"), tf.zeros([2, 0], tf.int32)
    zeros = tf.zeros([2], tf.int32)
    found = search(decoder_of(Chain(table), None, options), prefix, zeros, zeros + 5, options)
    np.testing.assert_array_equal(found.ids[:, 0], [[2, 1, 0, 2, 1]] * 2)
    alone, _ = continued(table, prefix, 5)
    np.testing.assert_array_equal(alone.ids[:, 0], [[2, 1]] * 2)


def test_language_model_goes_on_from_a_prefix_of_each_row():
    table = np.full([_V, _V], -9.0)
    for last, following in ((0, 2), (2, 3), (3, 4), (4, 5), (5, 1)):
        table[last, following] = 9.0
    found, _ = continued(table, [[4, 0, 0], [3, 3, 3], [0, 0, 0]], 6)
    np.testing.assert_array_equal(found.ids[:, 0], [[4, 5, 1, 0, 0, 0], [3, 3, 3, 4, 5, 1], [2, 3, 4, 5, 1, 0]])
    np.testing.assert_allclose(found.log_probability, [[0.0]] * 3, atol=1e-5)


def test_what_all_rows_are_given_is_not_searched_for():
    prefix = [[3, 3, 3, 0], [2, 4, 1, 0], [4, 1, 4, 3]]
    found, model = continued(np.eye(_V)[[2, 0, 3, 4, 5, 1]] * 9, prefix, 5)
    np.testing.assert_array_equal(found.ids[:, 0], [[3, 3, 3, 4, 5], [2, 4, 1, 0, 0], [4, 1, 4, 3, 4]])
    assert model.calls == 2


def test_prefix_longer_than_the_limit_comes_back_as_it_is():
    found, model = continued(np.zeros([_V, _V]), [[4, 5, 3]], 2)
    np.testing.assert_array_equal(found.ids, [[[4, 5, 3]]])
    np.testing.assert_array_equal(found.log_probability, [[0.0]])
    assert model.calls == 0


@pytest.mark.parametrize("width", [0, 3])
def test_empty_batch_gives_an_empty_answer(width):
    found = compile_search(Copier(_V))({"inputs": tf.zeros([0, width], tf.int32)}, tf.zeros([0], tf.int32))
    assert found.ids.shape[:2] == (0, 1) and found.log_probability.shape == (0, 1)


def test_half_precision_logits_are_scored_in_float32():
    class Half(Copier):
        def decode(self, targets, memory, max_steps=None, last=False):
            return tf.cast(super().decode(targets, memory), tf.float16)

    found = copied(INPUTS, 9, Half(_V))
    assert found.log_probability.dtype == tf.float32
    np.testing.assert_allclose(found.log_probability[1], [2 * (1.0 - np.log(np.e + 5.0))], rtol=1e-6)
