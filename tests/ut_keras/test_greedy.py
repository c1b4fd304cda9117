"""Greedy search against models whose answer is known."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.scripted import Copier, LastSentence, compile_greedy
from ut_keras.decoding.answer import answer, compile_answer
from ut_keras.decoding.greedy import greedy

_V = 6


class Chain(keras.Model):
    """A language model: the next id depends on the last one through a table [V, V] of logits; id 0 starts."""

    def __init__(self, table):
        super().__init__()
        self.table = tf.constant(table, tf.float32)

    def encode(self, x, max_steps=None):
        return None

    def decode(self, targets, memory, max_steps=None, last=False):
        return tf.gather(self.table, tf.pad(targets, [[0, 0], [1, 0]])[:, :-1])


INPUTS = np.array([[3, 4, 5, 1], [2, 1, 0, 0], [5, 5, 1, 0]], np.int32)


def test_each_row_ends_with_its_own_end_token():
    ids, _ = greedy(Copier(_V), {"inputs": tf.constant(INPUTS)}, 9)
    np.testing.assert_array_equal(ids, INPUTS)


def test_log_probability_is_summed_to_the_end_token():
    _, log_probability = greedy(Copier(_V), {"inputs": tf.constant(INPUTS)}, 9)
    one = 1.0 - np.log(np.e + 5.0)
    np.testing.assert_allclose(log_probability, [4 * one, 2 * one, 3 * one], rtol=1e-6)


def test_a_row_alone_and_in_a_batch_gives_the_same():
    model = Copier(_V)
    together = greedy(model, {"inputs": tf.constant(INPUTS)}, 9)
    for row in range(3):
        alone = greedy(model, {"inputs": tf.constant(INPUTS[row : row + 1])}, 9)
        length = alone.ids.shape[1]
        np.testing.assert_array_equal(alone.ids[0], together.ids[row, :length])
        np.testing.assert_array_equal(together.ids[row, length:], 0)
        np.testing.assert_allclose(alone.log_probability[0], together.log_probability[row], rtol=1e-6)


def test_every_row_obeys_its_own_limit():
    ids, _ = greedy(Copier(_V), {"inputs": tf.constant(INPUTS)}, tf.constant([2, 9, 0]))
    np.testing.assert_array_equal(ids, [[3, 4], [2, 1], [0, 0]])


def test_search_stops_when_all_rows_have_ended():
    ids, _ = greedy(Copier(_V), {"inputs": tf.constant(INPUTS[1:2])}, 1000)
    assert ids.shape == (1, 2)


def test_encoder_runs_once():
    model = Copier(_V)
    search = compile_greedy(model)
    search({"inputs": tf.constant(INPUTS)}, tf.fill([3], 9))
    assert float(model.encoded) == 1.0


def test_one_trace_serves_every_batch_size_and_length():
    search = compile_greedy(Copier(_V))
    for batch, length in ((1, 2), (3, 4), (2, 7)):
        search({"inputs": tf.ones([batch, length], tf.int32)}, tf.fill([batch], length))
    assert search.experimental_get_tracing_count() == 1


def test_padding_is_never_chosen():
    ids, _ = greedy(Chain([[9.0, 0.0, 5.0], [0.0, 0.0, 0.0], [9.0, 4.0, 1.0]]), {"targets": tf.zeros([2, 0])}, 5)
    np.testing.assert_array_equal(ids, [[2, 1], [2, 1]])


def test_language_model_goes_on_from_a_prefix_of_each_row():
    table = np.full([_V, _V], -9.0)
    for last, following in ((0, 2), (2, 3), (3, 4), (4, 5), (5, 1)):
        table[last, following] = 9.0
    prefixes = tf.constant([[4, 0, 0], [3, 3, 3], [0, 0, 0]])
    ids, log_probability = greedy(Chain(table), {"targets": prefixes}, 6)
    np.testing.assert_array_equal(ids, [[4, 5, 1, 0, 0, 0], [3, 3, 3, 4, 5, 1], [2, 3, 4, 5, 1, 0]])
    np.testing.assert_allclose(log_probability, [0.0, 0.0, 0.0], atol=1e-5)


def test_what_all_rows_are_given_is_not_searched_for():
    class Counted(Chain):
        calls = 0

        def decode(self, targets, memory, max_steps=None, last=False):
            self.calls += 1
            return super().decode(targets, memory)

    model = Counted(np.eye(_V)[[2, 0, 3, 4, 5, 1]] * 9)
    ids, _ = greedy(model, {"targets": tf.constant([[3, 3, 3, 0], [2, 4, 1, 0], [4, 1, 4, 3]])}, 5)
    np.testing.assert_array_equal(ids, [[3, 3, 3, 4, 5], [2, 4, 1, 0, 0], [4, 1, 4, 3, 4]])
    assert model.calls == 2


def test_prefix_longer_than_the_limit_comes_back_as_it_is():
    ids, log_probability = greedy(Chain(np.zeros([_V, _V])), {"targets": tf.constant([[4, 5, 3]])}, 2)
    np.testing.assert_array_equal(ids, [[4, 5, 3]])
    np.testing.assert_array_equal(log_probability, [0.0])


@pytest.mark.parametrize("width", [0, 3])
def test_empty_batch_gives_an_empty_answer(width):
    found = compile_greedy(Copier(_V))({"inputs": tf.zeros([0, width], tf.int32)}, tf.zeros([0], tf.int32))
    assert found.ids.shape[0] == 0 and found.log_probability.shape == (0,)


def test_half_precision_logits_are_scored_in_float32():
    class Half(Copier):
        def decode(self, targets, memory, max_steps=None, last=False):
            return tf.cast(super().decode(targets, memory), tf.float16)

    _, log_probability = greedy(Half(_V), {"inputs": tf.constant(INPUTS)}, 9)
    assert log_probability.dtype == tf.float32
    np.testing.assert_allclose(log_probability[1], 2 * (1.0 - np.log(np.e + 5.0)), rtol=1e-6)


def test_answer_leaves_an_empty_row_empty_and_reports_ponder_times():
    inputs = tf.constant([[3, 4, 1], [0, 0, 0]])
    found = answer(Copier(_V), inputs, tf.constant([9, 9]), "sequence", decoder_ponder=True)
    np.testing.assert_array_equal(found.ids, [[3, 4, 1], [0, 0, 0]])
    np.testing.assert_array_equal(found.scores[1], 0.0)
    np.testing.assert_array_equal(found.ponder_times["encoder"], [[3, 4, 1], [0, 0, 0]])
    np.testing.assert_array_equal(found.ponder_times["decoder"], [[3, 4, 1], [0, 0, 0]])


def test_class_answer_is_one_id_with_its_probability():
    inputs = tf.constant([[[3, 4, 2], [5, 2, 0]], [[7, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]])
    found = compile_answer(Copier(), LastSentence.features)(inputs, tf.zeros([3], tf.int32))
    np.testing.assert_array_equal(found.ids, [[5], [7], [0]])
    np.testing.assert_allclose(found.scores, [1 - np.log(np.e + 11)] * 2 + [0.0], rtol=1e-6)
    np.testing.assert_array_equal(found.ponder_times["encoder"], [[3, 5], [7, 0], [0, 0]])
