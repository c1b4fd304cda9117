"""The training loss: cross-entropy over real tokens, and the ponder cost, as sums and counts.

A sum and a count say everything about a loss; the caller divides when it has added up whatever
belongs together (a batch, all replicas, a whole split), so that no result depends on how examples
were batched or padded.

Shapes: B batch, M target length (end token included), L source length, V vocabulary.
"""

import math

import keras
import tensorflow as tf

PAD = 0


def token_cross_entropy(logits, targets, label_smoothing=0.0):
    """Returns the cross-entropy of each token, [B, M] float32, 0 at padding.

    The label gets 1 - label_smoothing and every other class label_smoothing / (V - 1). The entropy
    of that soft target is subtracted, so that the best possible value is 0 (tensor2tensor,
    common_layers.py, smoothing_cross_entropy).

    Args:
        logits: [B, M, V] float.
        targets: [B, M] int; id 0 is padding and has no loss.
        label_smoothing: Python float in [0, 1).
    """
    logits = tf.cast(logits, tf.float32)
    targets = tf.cast(targets, tf.int32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    if label_smoothing:
        # -sum(soft * log p), written around the label's own loss: no [B, M, V] soft target is made.
        classes = logits.shape[-1]
        others = max(classes - 1, 1)
        label_logits = tf.gather(logits, targets, batch_dims=2)
        excess = label_logits - tf.reduce_mean(logits, axis=-1)
        losses += label_smoothing * classes / others * excess - _entropy(label_smoothing, others)
    return losses * tf.cast(targets != PAD, tf.float32)


def token_cross_entropy_sums(logits, targets, label_smoothing=0.0):
    """Returns (sum of the cross-entropy, number of real tokens), two float32 scalars.

    Args:
        logits: [B, M, V], or [B, V] for class targets.
        targets: [B, M] int, or [B] or [B, 1] class ids. Id 0 counts for nothing.
        label_smoothing: Python float in [0, 1).
    """
    logits, targets = align(logits, targets)
    losses = token_cross_entropy(logits, targets, label_smoothing)
    return tf.reduce_sum(losses), tf.reduce_sum(tf.cast(targets != PAD, tf.float32))


def ponder_sums(ponder):
    """Returns {side: (sum of the ponder cost, number of positions)} of what a model's call gave.

    The cost of a position is its number of steps plus its remainder (Graves 2016, eq. 9). Only the
    remainder has a gradient.

    Args:
        ponder: {"encoder": Ponder, "decoder": Ponder}, or the sides that exist; {} without halting.
    """
    sums = {}
    for side, one in ponder.items():
        weights = tf.cast(one.weights, tf.float32)
        cost = tf.stop_gradient(tf.cast(one.ponder_times, tf.float32)) + tf.cast(one.remainders, tf.float32)
        sums[side] = (tf.reduce_sum(cost * weights), tf.reduce_sum(weights))
    return sums


def mean(total, count):
    """Returns total / count, and 0 where nothing was counted."""
    return tf.math.divide_no_nan(tf.cast(total, tf.float32), tf.cast(count, tf.float32))


def align(logits, targets):
    """Returns logits [B, M, V] and targets [B, M] int32; class targets become sequences of one token."""
    targets = tf.cast(targets, tf.int32)
    if len(logits.shape) == 2:
        return logits[:, None, :], tf.reshape(targets, [-1, 1])
    return logits, targets


def _entropy(label_smoothing, others):
    confidence = 1.0 - label_smoothing
    return -(confidence * math.log(confidence) + label_smoothing * math.log(label_smoothing / others))


@keras.saving.register_keras_serializable(package="ut_keras")
class TokenCrossEntropy(keras.losses.Loss):
    """Cross-entropy per real token, for `compile` and `fit`.

    Masking: targets of id 0 have no loss and are not counted (so number your classes from 1); a batch without a real
    token has loss 0. Keras averages what a loss gives over the batches of an epoch; where batches have unequal numbers
    of tokens, the metric `Perplexity` is exact and the logged loss is not.

    Args:
        label_smoothing: probability spread over the other classes, in [0, 1).
        name: name of the loss.

    Call arguments:
        y_true: [B, M] int token ids, or [B] or [B, 1] class ids.
        y_pred: logits, [B, M, V] or [B, V].
        sample_weight: [B] or [B, M] float, or None; weighs loss and count alike.

    Returns:
        A float32 scalar: the mean over real tokens.

    Example:

    >>> import numpy as np
    >>> loss = TokenCrossEntropy()
    >>> float(loss(np.array([[2, 1, 0]]), np.zeros([1, 3, 4], "float32")))  # doctest: +ELLIPSIS
    1.386...

    Source: tensor2tensor, common_layers.py, padded_cross_entropy.
    """

    def __init__(self, label_smoothing=0.0, name="token_cross_entropy"):
        super().__init__(name=name)
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing={label_smoothing!r} is not in [0, 1)")
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        # Keras would cast the ids to floats and divide by the padded size; both are wrong here.
        logits, targets = align(tf.convert_to_tensor(y_pred), y_true)
        losses = token_cross_entropy(logits, targets, self.label_smoothing)
        counts = tf.cast(targets != PAD, tf.float32)
        if sample_weight is not None:
            weights = tf.cast(sample_weight, tf.float32)
            if len(weights.shape) == 1:
                weights = weights[:, None]
            losses, counts = losses * weights, counts * weights
        return mean(tf.reduce_sum(losses), tf.reduce_sum(counts))

    def call(self, y_true, y_pred):
        """Returns the same as calling the loss without weights."""
        return self(y_true, y_pred)

    def get_config(self):
        return {"name": self.name, "label_smoothing": self.label_smoothing}
