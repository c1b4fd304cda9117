"""The answers of models of each kind, by models whose answers are known.

Legend: B batch, P prompt length, n hypotheses, N produced length.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.scripted import Copier, CopyDigits, LastSentence
from ut_keras.decoding.answer import after_prompt, answer, compile_answer, kind_of
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError
from ut_keras.hparams import Features

SCORE = 3 - np.log(np.exp(3) + 7)  # of one id that `Counter` chooses
LEFT = -np.log(np.exp(3) + 7)  # of one that it does not
PROMPTS = np.array([[2, 3, 0], [5, 0, 0], [0, 0, 0], [2, 3, 4]], np.int32)


class Counter:
    """Counts on: behind id n comes n + 1, behind 6 the end. Ponders as many steps at a position as its id says."""

    def encode(self, x, max_steps=None):
        return {}

    def decode(self, targets, memory, max_steps=None, last=False):
        before = tf.pad(targets, [[0, 0], [1, 0]])[:, :-1]
        return 3.0 * tf.one_hot(tf.where(before >= 6, 1, before + 1), 8)


class Pondering(Counter):
    """Takes 1 + n steps to predict what comes behind id n."""

    def decode(self, targets, memory, max_steps=None, last=False, return_ponder=False):
        assert return_ponder
        times = 1.0 + tf.cast(tf.pad(targets, [[0, 0], [1, 0]])[:, :-1], tf.float32)
        logits = super().decode(targets, memory)
        return (logits[:, -1:], times[:, -1:]) if last else (logits, times)


def test_continuation_is_what_comes_behind_the_prompt():
    found = answer(Pondering(), PROMPTS, [9, 2, 9, 1], "continuation")
    rows, times = [[4, 5, 6, 1], [6, 1], [], [5]], [[4, 5, 6, 7], [6, 7], [], [5]]
    for row, (ids, taken) in enumerate(zip(rows, times, strict=True)):
        np.testing.assert_array_equal(found.ids[row, 0], ids + [0] * (5 - len(ids)))
        np.testing.assert_array_equal(found.ponder_times["decoder"][row, 0], taken + [0] * (5 - len(ids)))
    np.testing.assert_array_equal(found.ponder_times["prompt"], [[1, 3, 0], [1, 0, 0], [0, 0, 0], [1, 3, 4]])
    np.testing.assert_allclose(found.log_probability[:, 0], np.array([4, 2, 0, 1]) * SCORE, rtol=1e-6)


def test_model_that_does_not_ponder_takes_one_step_everywhere():
    found = answer(Counter(), PROMPTS[:2], [9, 2], "continuation")
    np.testing.assert_array_equal(found.ponder_times["prompt"], [[1, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(found.ponder_times["decoder"][:, 0], [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])


@pytest.mark.parametrize("options", [{}, {"beam_size": 3, "n_best": 2}, {"temperature": 1.0, "n_best": 2}])
@pytest.mark.parametrize("rows", [[0], [1], [2], [2, 0]])
def test_continuation_does_not_depend_on_batch_mates(rows, options):
    compiled = compile_answer(Counter(), Features("sequence", 8), DecodingOptions(**options))
    limits, keys = np.array([9, 2, 9, 1], np.int32), np.array([4, 7, 1, 1], np.int32)
    whole, part = compiled(PROMPTS, limits, keys), compiled(PROMPTS[rows], limits[rows], keys[rows])
    width = min(whole.ids.shape[2], part.ids.shape[2])
    np.testing.assert_array_equal(part.ids[..., :width], whole.ids.numpy()[rows, :, :width])
    np.testing.assert_allclose(part.scores, whole.scores.numpy()[rows], rtol=1e-6)


def test_sequence_answer_leaves_an_empty_row_empty_and_does_not_encode_it():
    class Noted(Copier):
        def encode(self, x, max_steps=None):
            self.rows = len(x["inputs"])
            return super().encode(x)

    model, inputs = Noted(), tf.constant([[3, 4, 1], [0, 0, 0], [5, 1, 0]])
    found = answer(model, inputs, tf.constant([9, 9, 9]), "sequence")
    np.testing.assert_array_equal(found.ids[:, 0], [[3, 4, 1], [0, 0, 0], [5, 1, 0]])
    np.testing.assert_array_equal(found.log_probability[1], [0.0])
    np.testing.assert_array_equal(found.ponder_times["encoder"], [[3, 4, 1], [0, 0, 0], [5, 1, 0]])
    np.testing.assert_array_equal(found.ponder_times["decoder"][:, 0] > 0, [[1, 1, 1], [0, 0, 0], [1, 1, 0]])
    assert model.rows == 2


@pytest.mark.parametrize("count", [0, 1, 3])
def test_batch_of_nothing_is_answered_with_nothing(count):
    """A column at least, so that every decoder of ids takes the answer."""
    options = DecodingOptions(beam_size=2, n_best=2)
    for features in (CopyDigits.features, Features("sequence", 12)):
        model = Copier() if features.input_vocabulary_size else Counter()
        found = compile_answer(model, features, options)(np.zeros([count, 2], "int32"), np.full([count], 9, "int32"))
        np.testing.assert_array_equal(found.ids, np.zeros([count, 2, 1]))
        np.testing.assert_array_equal(found.scores, [[0.0, -np.inf]] * count if count else np.zeros([0, 2]))


def test_best_hypotheses_come_with_both_scores():
    options = DecodingOptions(beam_size=3, n_best=2, alpha=1.0)
    found = answer(Counter(), PROMPTS[1:2], [9], "continuation", options)
    np.testing.assert_array_equal(found.ids, [[[6, 1, 0, 0, 0, 0, 0], [6, 2, 3, 4, 5, 6, 1]]])
    np.testing.assert_allclose(found.log_probability, [[2 * SCORE, 6 * SCORE + LEFT]], rtol=1e-5)
    np.testing.assert_allclose(found.scores, [[2 * SCORE / (7 / 6), (6 * SCORE + LEFT) / (12 / 6)]], rtol=1e-5)


def test_class_answer_is_one_id_with_its_probability():
    inputs = tf.constant([[[3, 4, 2], [5, 2, 0]], [[7, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]])
    found = compile_answer(Copier(), LastSentence.features)(inputs, tf.zeros([3], tf.int32))
    np.testing.assert_array_equal(found.ids, [[[5]], [[7]], [[0]]])
    np.testing.assert_allclose(found.scores[:, 0], [1 - np.log(np.e + 11)] * 2 + [0.0], rtol=1e-6)
    np.testing.assert_array_equal(found.ponder_times["encoder"], [[3, 5], [7, 0], [0, 0]])
    assert set(found.ponder_times) == {"encoder"}


def test_so_many_classes_as_there_are():
    options = DecodingOptions(n_best=13)
    found = answer(Copier(), tf.constant([[[3, 4, 2]], [[0, 0, 0]]]), [0, 0], "class", options)
    np.testing.assert_array_equal(found.ids[0, :, 0], [3, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0])
    expected = [1 - np.log(np.e + 11)] + [-np.log(np.e + 11)] * 10 + [-np.inf] * 2
    np.testing.assert_allclose(found.log_probability[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(found.ids[1], np.zeros([13, 1]))
    np.testing.assert_array_equal(found.scores[1], [0.0] + [-np.inf] * 12)


def test_options_without_a_use_are_refused_before_anything_runs():
    with pytest.raises(UsageError, match="the answer is a class"):
        compile_answer(Copier(), LastSentence.features, DecodingOptions(beam_size=2))
    with pytest.raises(UsageError, match="n_best=2 needs a beam"):
        compile_answer(Copier(), CopyDigits.features, DecodingOptions(n_best=2))


def test_one_trace_with_and_without_keys():
    compiled = compile_answer(Copier(), CopyDigits.features, DecodingOptions(temperature=1.0))
    for batch, width in ((1, 3), (4, 2), (2, 7)):
        inputs, limits = np.full([batch, width], 3, "int32"), np.full([batch], width, "int32")
        counted, given = compiled(inputs, limits), compiled(inputs, limits, np.arange(batch, dtype="int32"))
        np.testing.assert_array_equal(counted.ids, given.ids)
    assert compiled.experimental_get_tracing_count() == 1


def test_rows_begin_at_places_of_their_own():
    values = tf.constant([[[1, 2, 3], [7, 8, 9]], [[4, 5, 6], [0, 0, 0]]])
    np.testing.assert_array_equal(after_prompt(values, tf.constant([1, 3])), [[[2, 3], [8, 9]], [[0, 0], [0, 0]]])
    np.testing.assert_array_equal(after_prompt(values[..., :0], tf.constant([0, 0])), [[[0], [0]], [[0], [0]]])


def test_kind_of_answer():
    assert kind_of(Features("sequence", 8)) == "continuation"
    assert kind_of(Features("sequence", 8, 8)) == "sequence"
    assert kind_of(Features("class", 8, 8)) == "class"
