"""The head that chooses a word of the input: attention sum against a plain numpy one, and the model's battery.

Shapes: B batch, L length, V vocabulary size.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks
from ut_keras import (
    Classifier,
    PointerClassifier,
    TokenAccuracy,
    TokenCrossEntropy,
    TransformerEncoder,
    UniversalTransformerEncoder,
)
from ut_keras.decoding.answer import answer
from ut_keras.models.pointer import ABSENT, attention_sum

SIZES = {"hidden_size": 4, "num_heads": 2, "filter_size": 8}
# Words that stand once and twice, the unknown word (2), the end token (1), padding, and a row of all of one word.
IDS = np.array([[5, 3, 5, 2, 1, 0], [4, 4, 4, 4, 4, 1], [2, 6, 1, 0, 0, 0]], "int32")


def numpy_attention_sum(scores, ids, num_classes, reserved=3):
    result = np.full([len(ids), num_classes], ABSENT)
    result[:, :reserved] = ABSENT - 1
    for row, (row_scores, row_ids) in enumerate(zip(scores, ids, strict=True)):
        exponentials = np.where(row_ids >= reserved, np.exp(row_scores), 0.0)
        for word in set(row_ids[row_ids >= reserved]):
            result[row, word] = np.log(exponentials[row_ids == word].sum() / exponentials.sum())
    return result


def test_attention_sum_is_the_numpy_one(rng):
    scores = rng.normal(size=IDS.shape).astype("float32")
    logits = attention_sum(tf.constant(scores), tf.constant(IDS), 8).numpy()
    np.testing.assert_allclose(logits, numpy_attention_sum(scores, IDS, 8), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.exp(logits).sum(-1), 1, atol=1e-6)
    assert list(logits.argmax(-1)) == [5 if logits[0, 5] > logits[0, 3] else 3, 4, 6]


def test_even_scores_give_each_word_its_share_of_the_positions():
    logits = attention_sum(tf.zeros([1, 5]), tf.constant([[5, 3, 5, 2, 1]]), 7).numpy()[0]
    np.testing.assert_allclose(np.exp(logits[[3, 5]]), [1 / 3, 2 / 3], rtol=1e-5)
    np.testing.assert_allclose(logits[[4, 6]], ABSENT)
    np.testing.assert_allclose(logits[:3], ABSENT - 1)


def test_a_row_without_a_word_is_finite_and_has_no_gradient():
    scores = tf.Variable([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        logits = attention_sum(scores, tf.constant([[2, 1, 0], [0, 0, 0]]), 5)
        total = tf.reduce_sum(logits)
    np.testing.assert_allclose(logits, [[ABSENT - 1] * 3 + [ABSENT] * 2] * 2)
    np.testing.assert_array_equal(tape.gradient(total, scores), np.zeros([2, 3]))


def test_gradient_of_a_very_unlikely_word_does_not_vanish():
    scores = tf.Variable([[200.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        logits = attention_sum(scores, tf.constant([[3, 4, 4]]), 5)
        loss = -logits[0, 4]
    assert float(loss) == pytest.approx(200 - np.log(2), rel=1e-5)
    np.testing.assert_allclose(tape.gradient(loss, scores), [[1.0, -0.5, -0.5]], atol=1e-6)


@pytest.mark.slow  # the battery of a second model
class TestPointerClassifier(layer_checks.ModelChecks):
    # Embedding; attention 4 (4x4), transition, two norms; query.
    weight_count = 8 * 4 + (4 * 4 * 4 + (4 * 8 + 8) + (8 * 4 + 4) + 2 * 2 * 4) + (4 * 4 + 4)

    def make(self, **kwargs):
        return PointerClassifier(UniversalTransformerEncoder(8, max_steps=2, **SIZES, **kwargs), 8, **kwargs)

    def inputs(self, rng):
        return {"inputs": IDS}

    def real(self, inputs):
        return None

    def labels(self, inputs):
        return np.array([[3], [4], [6]])


def test_the_answer_is_a_word_of_the_input_whatever_the_scores():
    model = PointerClassifier(TransformerEncoder(9, max_steps=1, **SIZES), 9)
    inputs = np.array([[2, 7, 2, 1, 0], [2, 2, 8, 3, 1], [0, 0, 0, 0, 0]], "int32")
    found = answer(model, tf.constant(inputs), tf.ones([3], tf.int32), "class")
    ids = found.ids.numpy()[:, 0, 0]
    assert ids[0] == 7
    assert ids[1] in (3, 8)
    assert ids[2] == 0
    assert found.scores.numpy()[0, 0] == pytest.approx(0, abs=1e-6)
    np.testing.assert_array_equal(model.generate(inputs)[:, 0], ids)


@pytest.mark.slow  # trains
def test_it_learns_to_find_the_word_behind_a_mark():
    encoder = UniversalTransformerEncoder(12, max_steps=2, hidden_size=16, num_heads=2, filter_size=16)
    model = PointerClassifier(encoder, 12)
    ids = np.random.default_rng(1).integers(4, 12, [256, 6]).astype("int32")
    place = np.random.default_rng(2).integers(0, 5, 256)
    rows = np.arange(256)
    ids[rows, place] = 3
    inputs = {"inputs": np.pad(ids, [[0, 0], [0, 1]], constant_values=1)}
    labels = ids[rows, place + 1][:, None]
    model.compile(keras.optimizers.Adam(0.01), TokenCrossEntropy(), metrics=[TokenAccuracy()])
    history = model.fit(inputs, labels, batch_size=64, epochs=40, verbose=0).history
    assert history["accuracy"][-1] > 0.9


def test_encoder_and_classes_have_to_fit():
    with pytest.raises(ValueError, match="num_classes=7 is not the encoder's vocabulary size 8"):
        PointerClassifier(UniversalTransformerEncoder(8, **SIZES), 7)
    with pytest.raises(ValueError, match="points at tokens"):
        PointerClassifier(UniversalTransformerEncoder(8, words_per_sentence=3, **SIZES), 8)


def test_it_is_a_classifier_with_another_head():
    model = PointerClassifier(UniversalTransformerEncoder(8, **SIZES), 8)
    assert isinstance(model, Classifier)
    assert not hasattr(model, "classes")
