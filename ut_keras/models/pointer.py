"""A word of the input as the answer: reading comprehension by attention sum, on top of an encoder.

Legend: B batch, L length, D hidden size, V vocabulary size.
"""

import keras
import tensorflow as tf

from ut_keras.models.classifier import Classifier

# Padding, the end token and the unknown word, which are in the inputs and never an answer.
NUM_RESERVED = 3
# Natural logarithm of the probability of a word that is not in the input: two in a billion.
ABSENT = -20.0
_MASKED = -1e9


def attention_sum(scores, ids, num_classes, reserved=NUM_RESERVED):
    """Returns the logarithm of each word's share of a softmax over positions, [B, V] float32.

    The probability of a word is the sum over the positions where it stands. It is summed in logarithms, so that a
    word's gradient does not vanish with its probability. A word that stands nowhere gets `ABSENT`, and a reserved
    id one less: each row is finite, and the best of it is a word of the input wherever there is one.

    Args:
        scores: [B, L] float, the softmax's logits.
        ids: [B, L] int32 below V.
        num_classes: V.
        reserved: ids below this take no part in the softmax.
    """
    words = ids >= reserved
    scores = tf.where(words, tf.cast(scores, tf.float32), _MASKED)
    same = (ids[:, :, None] == ids[:, None, :]) & words[:, None, :]
    of_word = tf.reduce_logsumexp(tf.where(same, scores[:, None, :], _MASKED), axis=-1)
    shares = of_word - tf.reduce_logsumexp(scores, axis=-1, keepdims=True)
    # Each word is written once, from the first position where it stands.
    places = tf.range(tf.shape(ids)[1])
    first = words & ~tf.reduce_any(same & (places[None, :] < places[:, None]), axis=-1)
    rows = tf.broadcast_to(tf.range(tf.shape(ids)[0])[:, None], tf.shape(ids))
    above = tf.scatter_nd(
        tf.stack([rows, ids], axis=-1), tf.where(first, shares - ABSENT, 0.0), [tf.shape(ids)[0], num_classes]
    )
    return above + tf.where(tf.range(num_classes) < reserved, ABSENT - 1.0, ABSENT)


@keras.saving.register_keras_serializable("ut_keras")
class PointerClassifier(Classifier):
    """An encoder whose answer is one word of its input: attention-sum reading.

    The state of the last real position (the end token, which stands where the missing word would) becomes a query; its
    products with all states are the logits of a softmax over positions, and a word's probability is the sum over the
    positions where it stands. Padding, the end token and the unknown word (ids 0 to 2) are never the answer.

    Args:
        encoder: a `UniversalTransformerEncoder` or `TransformerEncoder` of tokens, without head.
        num_classes: V, the encoder's vocabulary size.

    Call arguments:
        features: {"inputs": [B, L] int} (other features are not read), or the ids.
        training, return_ponder, max_steps, seed: as `UniversalTransformerEncoder`.

    Returns:
        [B, V] float32 logits (logarithms of probabilities; `ABSENT` for words that are not in the input), and
        {"encoder": Ponder} where asked for.

    Raises:
        ValueError: the encoder reads sentences, or its vocabulary size is not `num_classes`.

    Example:

    >>> from ut_keras import UniversalTransformerEncoder
    >>> encoder = UniversalTransformerEncoder(20, hidden_size=8, num_heads=2, filter_size=16)
    >>> logits = PointerClassifier(encoder, num_classes=20)(keras.ops.array([[5, 6, 5, 1, 0]]))
    >>> sorted(int(i) for i in keras.ops.argsort(logits[0])[-2:])
    [5, 6]

    Source: Kadlec et al. 2016 (attention-sum reader), with the query from the same encoder.
    """

    def _build_head(self, hidden_size):
        config = self.encoder.get_config()
        if config["words_per_sentence"]:
            raise ValueError(f"{type(self).__name__} points at tokens, and the encoder reads sentences")
        if config["vocabulary_size"] != self.num_classes:
            raise ValueError(
                f"num_classes={self.num_classes} is not the encoder's vocabulary size {config['vocabulary_size']}"
            )
        self.query = keras.layers.Dense(hidden_size, name="query", dtype="float32")
        self.query.build((None, hidden_size))

    def classify(self, memory):
        states, mask = tf.cast(memory["states"], tf.float32), memory["mask"]
        length, size = tf.shape(states)[1], states.shape[-1]
        last = tf.reduce_max(tf.where(mask, tf.range(length), 0), axis=1)
        query = self.query(tf.gather(states, last, batch_dims=1))
        scores = tf.linalg.matvec(states, query) / size**0.5
        return attention_sum(scores, memory["inputs"], self.num_classes)

    def _refine(self, features, max_steps=None, seed=None):
        memory, ponder = super()._refine(features, max_steps, seed)
        ids = features["inputs"] if isinstance(features, dict) else features
        return {**memory, "inputs": tf.cast(ids, tf.int32)}, ponder
