"""`model.generate(ids)`: decoding from plain Python.

Legend: B batch, L source length (S sentences of W words where inputs are [B, S, W]), P prefix length, n hypotheses,
N produced length.
"""

import dataclasses

import tensorflow as tf

from ut_keras.decoding.answer import answer
from ut_keras.decoding.decoder import PAD
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import decoder_of, search
from ut_keras.errors import UsageError, UserError


def generate(model, ids, max_length=None, **options):
    """Returns a model's answer to a batch, or the n best ones.

    Args:
        model: any model of this package.
        ids: [B, L] or [B, S, W] int inputs, 0 is padding; for a language model the prefixes [B, P], which
            may be empty (P = 0).
        max_length: int or [B], most ids to make, end token included, prefix not; None: L + 100.
        **options: fields of `DecodingOptions`: beam_size, alpha, n_best, temperature, seed, max_steps, ... Greedy
            search without any.

    Returns:
        [B, N] int32 numpy array, 0 after the end token; with n_best > 1 [B, n, N], the best first (a row of zeros where
        there are fewer). A language model's rows begin with their prefix, a classifier's are one id, those of an
        encoder with head="tokens" one id per position.

    Raises:
        UserError: the model does not answer (an encoder alone), or an id is outside of its vocabulary.
        UsageError: an option that does not exist, has a wrong value, or has no meaning for this model.
    """
    options = DecodingOptions.from_dict(options)
    ids = tf.cast(tf.convert_to_tensor(ids), tf.int32)
    _refuse(model, ids, options)
    limits = tf.shape(ids)[1] + 100 if max_length is None else tf.cast(max_length, tf.int32)
    # Beside the model, so that both are dropped together, and past Keras' __setattr__, which would track it.
    compiled = vars(model).setdefault("_generate", {})
    if options not in compiled:
        compiled[options] = _compile(model, ids.shape.rank, options)
    found = compiled[options](ids, tf.broadcast_to(limits, tf.shape(ids)[:1])).numpy()
    return found if options.n_best > 1 else found[:, 0]


def _refuse(model, ids, options):
    kind = _kind(model)
    if kind is None:
        raise UserError(f"{type(model).__name__} gives states, not answers: put a Classifier on it, or head='tokens'")
    if kind == "tokens":
        for field in dataclasses.fields(options):
            value = getattr(options, field.name)
            if field.name != "max_steps" and value != field.default:
                raise UsageError(f"{field.name}={value!r}: an encoder's ids are each the best one, without any search")
    else:
        options.check(kind)
    parts = (model, getattr(model, "encoder", None))
    tables = [getattr(part, name, None) for part in parts for name in ("input_embedding", "embedding")]
    size = next((table.vocabulary_size for table in tables if table is not None), None)
    if size is None or not int(tf.size(ids)):
        return
    for bad in (int(tf.reduce_min(ids)), int(tf.reduce_max(ids))):
        if not 0 <= bad < size:
            raise UserError(f"id {bad} is outside of the vocabulary of {size} ids")


def _kind(model):
    """Returns "class", "tokens", "continuation" or "sequence"; None for a model that gives states."""
    from ut_keras.models.language_model import UniversalTransformerLM

    if hasattr(model, "classify"):
        return "class"
    if getattr(model, "head", None) == "tokens":
        return "tokens"
    if isinstance(model, UniversalTransformerLM):
        return "continuation"
    return "sequence" if hasattr(model, "decode") else None


def _compile(model, rank, options):
    kind = _kind(model)

    @tf.function(
        autograph=False, input_signature=[tf.TensorSpec([None] * rank, tf.int32), tf.TensorSpec([None], tf.int32)]
    )
    def run(ids, limits):
        if kind == "tokens":
            best = tf.argmax(model({"inputs": ids}, max_steps=options.max_steps)[..., 1:], -1, output_type=tf.int32) + 1
            return tf.where(ids != PAD, best, PAD)[:, tf.newaxis]
        if kind == "continuation":
            # An empty prefix is one: the text is made from nothing.
            lengths = tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)
            decoder = decoder_of(model, model.encode({"targets": ids}, max_steps=options.max_steps), options)
            return search(decoder, ids, lengths, lengths + limits, options).ids
        return answer(model, ids, limits, kind, options).ids

    return run
