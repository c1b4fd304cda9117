"""Embeddings: tokens, sentences of words, and the softmax that shares the table.

Legend: B batch, L length, S sentences, W words of a sentence, D hidden size, V vocabulary size.
"""

import keras
import tensorflow as tf

from ut_keras.layers.custom_gradient import custom_gradient
from ut_keras.layers.projection import project


@keras.saving.register_keras_serializable("ut_keras")
class TokenEmbedding(keras.layers.Layer):
    """A table of V vectors; id 0 (padding) is embedded as zeros, and an id outside of the table is an error.

    Where the device does not raise that error (XLA, GPUs) the vector is NaN.

    Args:
        vocabulary_size: V.
        hidden_size: D.
        scale: multiply looked-up vectors by sqrt(D), as T2T and the Transformer do.

    Call arguments:
        ids: [...] int.

    Returns:
        [..., D].

    Example:

    >>> table = TokenEmbedding(vocabulary_size=5, hidden_size=2)
    >>> table(tf.constant([[0, 3]])).shape.as_list()
    [1, 2, 2]

    Source: T2T layers/modalities.py.
    """

    def __init__(self, vocabulary_size, hidden_size, scale=True, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_size = hidden_size
        self.scale = scale
        self.build()

    def build(self, shape=None):
        if self.built:
            return
        normal = keras.initializers.RandomNormal(stddev=self.hidden_size**-0.5)
        self.table = self.add_weight(
            name="table", shape=(self.vocabulary_size, self.hidden_size), initializer=normal, autocast=False
        )
        self.built = True

    def call(self, ids):
        # The gradient of a frequent row is a sum of many: it is added up in float32 under every policy.
        vectors = tf.gather(dense_gradient(tf.convert_to_tensor(self.table)), ids)
        vectors = tf.cast(vectors, self.compute_dtype)
        if self.scale:
            vectors *= tf.constant(self.hidden_size**0.5, vectors.dtype)
        # XLA and GPUs read some row for an id outside of the table; nobody should train on that unseen.
        known = (ids >= 0) & (ids < self.vocabulary_size)
        factor = tf.where(known, tf.cast(tf.not_equal(ids, 0), vectors.dtype), tf.constant(float("nan"), vectors.dtype))
        return vectors * factor[..., None]

    def logits(self, states):
        """Returns [B, L, V] float32: states [B, L, D] times the transposed table, without bias."""
        if states.dtype == tf.float16:  # logits may exceed what float16 holds
            states = tf.cast(states, tf.float32)
        table = tf.cast(tf.convert_to_tensor(self.table), states.dtype)
        return tf.cast(project(states, table, transpose=True), tf.float32)

    def get_config(self):
        names = ("vocabulary_size", "hidden_size", "scale")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable("ut_keras")
class SentenceEmbedding(keras.layers.Layer):
    """Sentences of word vectors become one vector each: the sum of words times a learned mask per word position.

    The last real sentence of a row is its question and has a mask of its own. Both masks begin as ones.

    Args:
        words: W, the most words that a sentence may have.

    Call arguments:
        vectors: [B, S, W, D] float, embedded words, 0 where there is none.
        padding_mask: [B, S] bool, True at real sentences.

    Returns:
        [B, S, D].

    Example:

    >>> layer = SentenceEmbedding(words=2)
    >>> layer(tf.ones([1, 3, 2, 4]), tf.constant([[True, True, False]])).numpy()[0, 0].tolist()
    [2.0, 2.0, 2.0, 2.0]

    Source: paper section 3.1 and Henaff et al. 2017; the authors' bAbI-T2T.
    """

    def __init__(self, words, **kwargs):
        super().__init__(**kwargs)
        self.words = words

    def build(self, shape):
        size = (self.words, shape[-1])
        self.fact_mask = self.add_weight(name="fact_mask", shape=size, initializer="ones")
        self.question_mask = self.add_weight(name="question_mask", shape=size, initializer="ones")
        self.built = True

    def call(self, vectors, padding_mask):
        words = vectors.shape[2]
        if words is not None and words > self.words:
            raise ValueError(f"a sentence of {words} words: this model was built for at most {self.words}")
        count = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1, keepdims=True)
        is_question = tf.equal(tf.range(tf.shape(padding_mask)[1])[None, :], count - 1)
        facts, question = (tf.convert_to_tensor(mask)[: tf.shape(vectors)[2]] for mask in self._masks(vectors.dtype))
        as_fact = tf.einsum("bswd,wd->bsd", vectors, facts)
        as_question = tf.einsum("bswd,wd->bsd", vectors, question)
        return tf.where(is_question[..., None], as_question, as_fact)

    def _masks(self, dtype):
        return (tf.cast(tf.convert_to_tensor(mask), dtype) for mask in (self.fact_mask, self.question_mask))

    def get_config(self):
        return {**super().get_config(), "words": self.words}


@custom_gradient
def dense_gradient(table):
    """Returns `table` itself; its gradient is one dense tensor, which clipping, scaling and reducing need."""
    return tf.identity(table), tf.convert_to_tensor
