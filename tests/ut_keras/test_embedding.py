"""Token and sentence embeddings, and the battery."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks
from ut_keras.layers.embedding import SentenceEmbedding, TokenEmbedding, dense_gradient

IDS = np.array([[3, 4, 1, 2], [2, 1, 0, 0]], "int32")


class TestTokenEmbedding(layer_checks.LayerChecks):
    weight_count = 5 * 4

    def make(self, **kwargs):
        return TokenEmbedding(5, 4, **kwargs)

    def inputs(self, rng):
        return {"ids": IDS}

    def real(self, inputs):
        return inputs["ids"] != 0


class TestSentenceEmbedding(layer_checks.LayerChecks):
    weight_count = 2 * 3 * 4

    def make(self, **kwargs):
        return SentenceEmbedding(3, **kwargs)

    def inputs(self, rng):
        mask = np.array([[True] * 4, [True] * 2 + [False] * 2])
        return {"vectors": rng.normal(size=[2, 4, 3, 4]).astype("float32"), "padding_mask": mask}


def test_rows_are_scaled_by_the_root_of_the_width_and_padding_is_zero():
    layer = TokenEmbedding(5, 4)
    vectors = layer(tf.constant(IDS))
    np.testing.assert_allclose(vectors[0, 0], 2 * layer.table.numpy()[3], rtol=1e-6)
    np.testing.assert_array_equal(vectors[1, 2:], np.zeros([2, 4]))
    plain = TokenEmbedding(5, 4, scale=False)
    np.testing.assert_array_equal(plain(tf.constant([4])), plain.table.numpy()[[4]])


def test_logits_are_states_times_the_table_in_float32(rng):
    layer = TokenEmbedding(5, 4, dtype="mixed_bfloat16")
    states = rng.normal(size=[2, 3, 4])
    logits = layer.logits(tf.constant(states, tf.bfloat16))
    assert logits.dtype == tf.float32
    np.testing.assert_allclose(logits, states @ layer.table.numpy().T, atol=0.05)


def test_the_gradient_of_the_table_is_one_dense_tensor_over_all_uses():
    layer = TokenEmbedding(5, 2)
    with tf.GradientTape() as tape:
        vectors = layer(tf.constant([[3, 3, 0]]))
        loss = tf.reduce_sum(vectors) + tf.reduce_sum(layer.logits(tf.ones([1, 1, 2])))
    gradient = tape.gradient(loss, layer.table.value)
    assert isinstance(gradient, tf.Tensor)
    expected = np.ones([5, 2])
    expected[3] += 2 * 2**0.5
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_dense_gradient_adds_repeated_rows():
    table = tf.Variable(tf.zeros([3, 1]))
    with tf.GradientTape() as tape:
        rows = tf.gather(dense_gradient(tf.convert_to_tensor(table)), [2, 2, 0])
    assert tape.gradient(rows, table).numpy().tolist() == [[1], [0], [2]]


def test_initial_spread_makes_scaled_rows_of_length_about_one_per_channel():
    keras.utils.set_random_seed(1)
    assert abs(np.std(TokenEmbedding(400, 64).table.numpy()) - 64**-0.5) < 0.005


def test_words_are_weighed_by_their_place_and_the_last_real_sentence_by_the_question_mask(rng):
    layer = SentenceEmbedding(3)
    vectors = rng.normal(size=[2, 3, 3, 4])
    layer.build(vectors.shape)
    facts, question = rng.normal(size=[2, 3, 4])
    layer.fact_mask.assign(facts)
    layer.question_mask.assign(question)
    mask = tf.constant([[True, True, True], [True, True, False]])
    ours = layer(tf.constant(vectors, tf.float32), mask)
    for row, last in ((0, 2), (1, 1)):
        for sentence in range(last + 1):
            weights = question if sentence == last else facts
            expected = sum(vectors[row, sentence, word] * weights[word] for word in range(3))
            np.testing.assert_allclose(ours[row, sentence], expected, rtol=1e-4, atol=1e-5)


def test_sentences_may_be_shorter_than_the_model_was_built_for_but_not_longer():
    layer = SentenceEmbedding(3)
    mask = tf.constant([[True]])
    np.testing.assert_array_equal(layer(tf.ones([1, 1, 2, 4]), mask), np.full([1, 1, 4], 2.0))
    with pytest.raises(ValueError, match="a sentence of 4 words: this model was built for at most 3"):
        layer(tf.ones([1, 1, 4, 4]), mask)
