"""`model.generate(ids)`: decoding from plain Python.

Shapes: B batch, L source length (S sentences of W words where inputs are [B, S, W]), P prefix length, N
produced length.
"""

import tensorflow as tf

from ut_keras.decoding.answer import answer
from ut_keras.decoding.greedy import PAD, greedy
from ut_keras.errors import UserError


def generate(model, ids, max_length=None, max_steps=None):
    """Returns a model's greedy answer to a batch.

    Args:
        model: any model of this package.
        ids: [B, L] or [B, S, W] int inputs, 0 is padding; for a language model the prefixes [B, P], which
            may be empty (P = 0).
        max_length: int or [B], most ids to make, end token included, prefix not; None: L + 100.
        max_steps: recurrent steps at most, for elastic depth; None: the model's own.

    Returns:
        [B, N] int32 numpy array, 0 after the end token; a language model's rows begin with their prefix,
        a classifier's are one id, those of an encoder with head="tokens" one id per position.

    Raises:
        UserError: the model does not answer (an encoder alone), or an id is outside of its vocabulary.
    """
    ids = tf.cast(tf.convert_to_tensor(ids), tf.int32)
    _refuse(model, ids)
    limits = tf.shape(ids)[1] + 100 if max_length is None else tf.cast(max_length, tf.int32)
    # Beside the model, so that both are dropped together, and past Keras' __setattr__, which would track it.
    compiled = vars(model).setdefault("_generate", {})
    if max_steps not in compiled:
        compiled[max_steps] = _compile(model, ids.shape.rank, max_steps)
    return compiled[max_steps](ids, tf.broadcast_to(limits, tf.shape(ids)[:1])).numpy()


def _refuse(model, ids):
    answers = hasattr(model, "classify") or hasattr(model, "decode") or getattr(model, "head", None) == "tokens"
    if not answers:
        raise UserError(f"{type(model).__name__} gives states, not answers: put a Classifier on it, or head='tokens'")
    parts = (model, getattr(model, "encoder", None))
    tables = [getattr(part, name, None) for part in parts for name in ("input_embedding", "embedding")]
    size = next((table.vocabulary_size for table in tables if table is not None), None)
    if size is None or not int(tf.size(ids)):
        return
    for bad in (int(tf.reduce_min(ids)), int(tf.reduce_max(ids))):
        if not 0 <= bad < size:
            raise UserError(f"id {bad} is outside of the vocabulary of {size} ids")


def _compile(model, rank, max_steps):
    from ut_keras.models.classifier import Classifier
    from ut_keras.models.language_model import UniversalTransformerLM

    @tf.function(input_signature=[tf.TensorSpec([None] * rank, tf.int32), tf.TensorSpec([None], tf.int32)])
    def run(ids, limits):
        if getattr(model, "head", None) == "tokens":
            best = tf.argmax(model({"inputs": ids}, max_steps=max_steps)[..., 1:], axis=-1, output_type=tf.int32) + 1
            return tf.where(ids != PAD, best, PAD)
        if isinstance(model, Classifier):
            return answer(model, ids, limits, "class", max_steps=max_steps).ids
        if isinstance(model, UniversalTransformerLM):
            limits += tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)
            return greedy(model, {"targets": ids}, limits, max_steps).ids
        return greedy(model, {"inputs": ids}, limits, max_steps).ids

    return run
