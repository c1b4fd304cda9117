"""The continuation of prompts, by a language model whose continuation is known."""

import numpy as np
import pytest
import tensorflow as tf

from ut_keras.decoding.answer import after_prompt, answer, compile_answer, continued, kind_of, text_ponder_times
from ut_keras.hparams import Features
from ut_keras.layers.halting import Ponder

SCORE = 3 - np.log(np.exp(3) + 7)  # of one id that `Counter` chooses


class Counter:
    """Counts on: behind id n comes n + 1, behind 6 the end. Ponders as many steps at a position as its id says."""

    def __init__(self, ponders=True):
        self.ponders = ponders

    def encode(self, x, max_steps=None):
        return {}

    def decode(self, targets, memory, max_steps=None, last=False):
        before = tf.pad(targets, [[0, 0], [1, 0]])[:, :-1]
        return 3.0 * tf.one_hot(tf.where(before >= 6, 1, before + 1), 8)

    def __call__(self, x, training=False, return_ponder=False, max_steps=None):
        times = tf.cast(x["targets"], tf.float32)
        trace = Ponder(times, times, times[tf.newaxis], tf.cast(x["targets"] != 0, tf.float32))
        return self.decode(x["targets"], {}), {"decoder": trace} if self.ponders else {}


PROMPTS = np.array([[2, 3, 0], [5, 0, 0], [0, 0, 0], [2, 3, 4]], np.int32)


def test_continuation_is_what_comes_behind_the_prompt():
    found = answer(Counter(), PROMPTS, [9, 2, 9, 1], "continuation", decoder_ponder=True)
    rows = [[4, 5, 6, 1], [6, 1], [], [5]]
    for row, ids in enumerate(rows):
        produced = found.ids.numpy()[row]
        np.testing.assert_array_equal(produced, ids + [0] * (len(produced) - len(ids)))
        np.testing.assert_array_equal(found.ponder_times["decoder"].numpy()[row], produced)
    np.testing.assert_allclose(found.scores, np.array([4, 2, 0, 1]) * SCORE, rtol=1e-6)


def test_prompt_is_no_part_of_the_score_and_the_limit_counts_what_is_produced():
    ids, scores = continued(Counter(), PROMPTS, np.array([1, 1, 1, 1]))
    np.testing.assert_array_equal(ids.numpy()[:, :4], [[2, 3, 4, 0], [5, 6, 0, 0], [0, 0, 0, 0], [2, 3, 4, 5]])
    np.testing.assert_allclose(scores, np.array([1, 1, 0, 1]) * SCORE, rtol=1e-6)


@pytest.mark.parametrize("rows", [[0], [1], [2], [2, 0]])
def test_continuation_does_not_depend_on_batch_mates(rows):
    compiled = compile_answer(Counter(), Features("sequence", 8))
    limits = np.array([9, 2, 9, 1], np.int32)
    whole, part = compiled(PROMPTS, limits), compiled(PROMPTS[rows], limits[rows])
    width = min(whole.ids.shape[1], part.ids.shape[1])
    np.testing.assert_array_equal(part.ids[:, :width], whole.ids.numpy()[rows, :width])
    np.testing.assert_allclose(part.scores, whole.scores.numpy()[rows])
    assert part.ponder_times == {}


def test_model_that_does_not_ponder_takes_one_step_everywhere():
    np.testing.assert_array_equal(text_ponder_times(Counter(False), tf.constant([[4, 5, 0]])), [[1, 1, 0]])


def test_rows_begin_at_places_of_their_own():
    values = tf.constant([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(after_prompt(values, tf.constant([1, 3])), [[2, 3], [0, 0]])
    np.testing.assert_array_equal(after_prompt(values[:, :0], tf.constant([0, 0])), [[0], [0]])


def test_kind_of_answer():
    assert kind_of(Features("sequence", 8)) == "continuation"
    assert kind_of(Features("sequence", 8, 8)) == "sequence"
    assert kind_of(Features("class", 8, 8)) == "class"
