"""Metrics of token predictions, as sums and counts over real tokens.

All of them are teacher-forced: the model saw the right earlier tokens. Scores of decoded output
are made where decoding is (`trainer.evaluate`).

Shapes: B batch, M target length (end token included), V vocabulary.
"""

import keras
import tensorflow as tf

from ut_keras.losses import PAD, align, mean, token_cross_entropy

EOS = 1


def sums(logits, targets):
    """Returns {name: (sum, count)}, float32 scalars, over targets that are not padding.

    Names: "accuracy", "accuracy_top5" and "neg_log_likelihood" (natural logarithm, not smoothed)
    count tokens; "sequence_accuracy" counts rows that have at least one real token, and a row is
    right if all of its real tokens are. Definitions as in tensor2tensor, utils/metrics.py.

    Args:
        logits: [B, M, V], or [B, V] for class targets.
        targets: [B, M] int, or [B] or [B, 1] class ids.
    """
    each = {name: tf.reduce_sum(values) for name, values in by_example(logits, targets).items()}
    return {
        "accuracy": (each["right"], each["tokens"]),
        "accuracy_top5": (tf.reduce_sum(right_in_top(logits, targets)), each["tokens"]),
        "sequence_accuracy": (each["sequence_right"], each["sequences"]),
        "neg_log_likelihood": (each["neg_log_likelihood"], each["tokens"]),
    }


def by_example(logits, targets):
    """Returns {name: [B] float32} of each row: what `sums` adds up.

    Names: "tokens" (real ones), "right" (tokens predicted right), "neg_log_likelihood" (summed over tokens, natural
    logarithm, not smoothed), "sequences" (1 where there is a real token) and "sequence_right".

    Args:
        logits, targets: as `sums`.
    """
    logits, targets = align(logits, targets)
    logits = tf.cast(logits, tf.float32)
    real = tf.cast(targets != PAD, tf.float32)
    right = _right(logits, targets)
    rows, right_rows = _rows(right, real)
    return {
        "tokens": tf.reduce_sum(real, axis=1),
        "right": tf.reduce_sum(right * real, axis=1),
        "neg_log_likelihood": tf.reduce_sum(token_cross_entropy(logits, targets), axis=1),
        "sequences": rows,
        "sequence_right": right_rows,
    }


def right_in_top(logits, targets, k=5):
    """Returns [B] float32: the real tokens of each row that are among the k most probable ids of their place.

    Fewer than k ids have to be more probable than the right one: ids that are exactly as probable do not count against
    it. (tensor2tensor takes the lower one of two such ids, which costs a hundred times as much.)

    Args:
        logits, targets: as `sums`.
        k: Python int.
    """
    logits, targets = align(logits, targets)
    flat = tf.reshape(tf.cast(logits, tf.float32), [-1, logits.shape[-1]])
    found = tf.reshape(tf.math.in_top_k(tf.reshape(targets, [-1]), flat, k), tf.shape(targets))
    return tf.reduce_sum(tf.cast(tf.logical_and(found, targets != PAD), tf.float32), axis=1)


def last_word(logits, targets, alternatives, unknown=PAD):
    """Returns {name: [B] float32} of each row's last real token; the end token behind it does not count as one.

    Names: "words" (1 where there is such a token, else all of the row is 0), "log_probability" (natural logarithm),
    "rank" (ids that are at least as probable, itself among them), "right" (of rank 1 and not the unknown word), "pairs"
    (1 where there is an alternative) and "preferred" (the token is more probable than its alternative).

    Args:
        logits: [B, M, V].
        targets: [B, M] int.
        alternatives: [B] int, an id to compare with at that position; 0: none.
        unknown: the id that stands for every unknown word, which is never right; 0: there is none.
    """
    targets = tf.cast(targets, tf.int32)
    real = tf.cast(tf.logical_and(targets != PAD, targets != EOS), tf.int32)
    place = tf.reduce_max(real * (tf.range(tf.shape(targets)[1])[None, :] + 1), axis=1) - 1
    found = tf.cast(place >= 0, tf.float32)
    place = tf.maximum(place, 0)
    word = tf.gather(targets, place, batch_dims=1)
    scores = tf.nn.log_softmax(tf.cast(tf.gather(logits, place, batch_dims=1), tf.float32))
    own = tf.gather(scores, word, batch_dims=1)
    rank = tf.reduce_sum(tf.cast(scores >= own[:, None], tf.float32), axis=1)
    pairs = found * tf.cast(alternatives != PAD, tf.float32)
    other = tf.gather(scores, alternatives, batch_dims=1)
    return {
        "words": found,
        "log_probability": found * own,
        "rank": found * rank,
        "right": found * tf.cast((rank == 1.0) & (word != unknown), tf.float32),
        "pairs": pairs,
        "preferred": pairs * tf.cast(own > other, tf.float32),
    }


def _right(logits, targets):
    return tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == targets, tf.float32)


def _rows(right, real):
    """Returns which rows count and which of those are right, both [B] float32."""
    rows = tf.reduce_max(real, axis=1)
    return rows, rows * tf.reduce_min(tf.maximum(right, 1.0 - real), axis=1)


class _Mean(keras.metrics.Metric):
    """Keeps a sum and a count; what they are of is the subclass's `measure`."""

    def __init__(self, name, dtype="float32"):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), initializer="zeros", name="total")
        self.count = self.add_variable((), initializer="zeros", name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch.

        Args:
            y_true: [B, M] int token ids, or [B] or [B, 1] class ids.
            y_pred: logits, [B, M, V] or [B, V].
            sample_weight: [B] or, where tokens are measured, [B, M] float; None; weighs sum and count alike.
        """
        logits, targets = align(tf.convert_to_tensor(y_pred), y_true)
        logits = tf.cast(logits, tf.float32)
        values, counts = self.measure(logits, targets, tf.cast(targets != PAD, tf.float32))
        if sample_weight is not None:
            weights = tf.cast(sample_weight, tf.float32)
            if len(weights.shape) > len(values.shape):
                raise ValueError(f"{type(self).__name__} measures examples: sample_weight has to be [B], not [B, M]")
            if len(weights.shape) < len(values.shape):
                weights = weights[:, None]
            values, counts = values * weights, counts * weights
        self.total.assign_add(tf.reduce_sum(values))
        self.count.assign_add(tf.reduce_sum(counts))

    def measure(self, logits, targets, real):
        """Returns what to add to the sum and to the count, two tensors of one shape, batch first."""
        raise TypeError(f"{type(self).__name__} does not say what it measures")

    def result(self):
        return mean(self.total, self.count)


@keras.saving.register_keras_serializable(package="ut_keras")
class TokenAccuracy(_Mean):
    """Share of real tokens that are predicted right, given the right earlier ones.

    Masking: targets of id 0 are not counted. 0 before anything was counted.

    Args:
        name: name in logs.

    Example:

    >>> import numpy as np
    >>> metric = TokenAccuracy()
    >>> metric.update_state(np.array([[1, 1, 0]]), np.array([[[0., 9.], [9., 0.], [9., 0.]]]))
    >>> float(metric.result())
    0.5

    Source: tensor2tensor, utils/metrics.py, padded_accuracy.
    """

    def __init__(self, name="accuracy", dtype="float32"):
        super().__init__(name, dtype)

    def measure(self, logits, targets, real):
        return _right(logits, targets) * real, real


@keras.saving.register_keras_serializable(package="ut_keras")
class SequenceAccuracy(_Mean):
    """Share of rows whose real tokens are all right, each given the right earlier ones.

    Teacher-forced, hence its name in logs: decoded output is right less often.

    Masking: targets of id 0 are not looked at, rows without a real token are not counted.

    Args:
        name: name in logs.

    Example:

    >>> import numpy as np
    >>> metric = SequenceAccuracy()
    >>> metric.update_state(np.array([[1, 0], [1, 1]]), np.array([[[0., 9.], [9., 0.]], [[0., 9.], [9., 0.]]]))
    >>> float(metric.result())
    0.5

    Source: tensor2tensor, utils/metrics.py, padded_sequence_accuracy.
    """

    def __init__(self, name="teacher_forced_sequence_accuracy", dtype="float32"):
        super().__init__(name, dtype)

    def measure(self, logits, targets, real):
        rows, right_rows = _rows(_right(logits, targets), real)
        return right_rows, rows


@keras.saving.register_keras_serializable(package="ut_keras")
class Perplexity(_Mean):
    """e to the mean negative log-likelihood of the real tokens; 1 before anything was counted.

    Masking: targets of id 0 are not counted. Labels are not smoothed.

    Args:
        name: name in logs.

    Example:

    >>> import numpy as np
    >>> metric = Perplexity()
    >>> metric.update_state(np.array([[3, 1, 0]]), np.zeros([1, 3, 4]))
    >>> round(float(metric.result()), 3)
    4.0

    Source: tensor2tensor, utils/metrics.py, padded_neg_log_perplexity, with the sign and exponential undone.
    """

    def __init__(self, name="perplexity", dtype="float32"):
        super().__init__(name, dtype)

    def measure(self, logits, targets, real):
        return token_cross_entropy(logits, targets), real

    def result(self):
        return tf.exp(super().result())
