"""Masks and what they become in attention."""

import numpy as np
import pytest
import tensorflow as tf

from ut_keras.layers import masks


def test_a_token_is_real_where_its_id_is_not_zero():
    assert masks.sequence_mask(tf.constant([[5, 1, 0], [0, 0, 0]])).numpy().tolist() == [
        [True, True, False],
        [False, False, False],
    ]


def test_a_sentence_is_real_where_any_of_its_words_is():
    sentences = tf.constant([[[5, 0], [0, 7], [0, 0]]])
    assert masks.sequence_mask(sentences).numpy().tolist() == [[True, True, False]]


def test_causal_mask_shows_a_position_itself_and_those_before():
    assert masks.causal_mask(3).numpy().tolist() == [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bias_takes_all_weight_from_what_is_hidden_and_stays_finite(dtype):
    mask = tf.constant([[[True, False, True]], [[False, False, False]]])
    bias = masks.attention_bias(mask, dtype)
    assert bias.shape == (2, 1, 1, 3)
    assert bias.dtype == dtype
    logits = tf.constant([[[[4.0, 9.0, 4.0]]], [[[4.0, 9.0, 4.0]]]], dtype) + bias
    assert np.all(np.isfinite(tf.cast(logits, "float32")))
    weights = tf.nn.softmax(tf.cast(logits, "float32")).numpy()
    np.testing.assert_array_equal(weights[0, 0, 0], [0.5, 0, 0.5])
    np.testing.assert_allclose(weights[1].sum(), 1, rtol=1e-6)
