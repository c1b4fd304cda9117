"""One class for the whole input, on top of an encoder.

Legend: B batch, L length, D hidden size, V classes.
"""

import keras
import tensorflow as tf

from ut_keras.models.model import SequenceModel


@keras.saving.register_keras_serializable("ut_keras")
class Classifier(SequenceModel):
    """An encoder, the mean over its real positions, and a dense layer to the classes.

    Args:
        encoder: a `UniversalTransformerEncoder` or `TransformerEncoder` without head.
        num_classes: V, ids 0 to V-1. Number your classes from 1 and count one more: 0 stands for padding, which
            the loss and the metrics leave out and `generate` never answers.

    Call arguments:
        features: {"inputs": [B, L] or [B, S, W] int} (other features are not read), or the ids.
        training, return_ponder, max_steps, seed: as `UniversalTransformerEncoder`.

    Returns:
        [B, V] float32 logits, and {"encoder": Ponder} where asked for.

    Example:

    >>> from ut_keras import UniversalTransformerEncoder
    >>> encoder = UniversalTransformerEncoder(20, hidden_size=8, num_heads=2, filter_size=16)
    >>> Classifier(encoder, num_classes=3)(keras.ops.array([[5, 6, 0]])).shape.as_list()
    [1, 3]

    Source: T2T layers/modalities.py (class label top; ours leaves padding out of the mean).
    """

    def __init__(self, encoder, num_classes, name=None, dtype=None):
        warmup = encoder.ponder_warmup_steps
        super().__init__(0, encoder.ponder_weight, warmup, halting="encoder", name=name, dtype=dtype)
        self.encoder = encoder
        self.num_classes = num_classes
        self._build_head(encoder.get_config()["hidden_size"])
        self.build()

    def _build_head(self, hidden_size):
        self.classes = keras.layers.Dense(self.num_classes, name="classes", dtype="float32")
        self.classes.build((None, hidden_size))

    def call(self, features, training=None, return_ponder=False, max_steps=None, seed=None):
        memory, ponder = self._refine(features, max_steps, self._begin(training, seed))
        return self._finish(self.classify(memory), {"encoder": ponder}, return_ponder)

    def encode(self, features, max_steps=None):
        """Returns the memory of the inputs, a dictionary of tensors with the batch leading."""
        return self._refine(features, max_steps)[0]

    def _refine(self, features, max_steps=None, seed=None):
        """Returns (memory, Ponder): what `classify` reads, and what the recurrence cost."""
        memory, ponder, _ = self.encoder.refine(features, max_steps, seed)
        return memory, ponder

    def classify(self, memory):
        """Returns the logits [B, V] of an encoded input."""
        weights = tf.cast(memory["mask"], tf.float32)[..., None]
        total = tf.reduce_sum(tf.cast(memory["states"], tf.float32) * weights, axis=1)
        return self.classes(tf.math.divide_no_nan(total, tf.reduce_sum(weights, axis=1)))

    def get_config(self):
        base = {"name": self.name, "dtype": keras.saving.serialize_keras_object(self.dtype_policy)}
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {**base, "encoder": encoder, "num_classes": self.num_classes}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "encoder": keras.saving.deserialize_keras_object(config["encoder"])})
