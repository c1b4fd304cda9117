"""`model.generate(ids)`: decoding from plain Python.

Legend: B batch, L source length (S sentences of W words where inputs are [B, S, W]), P prefix length, n hypotheses,
N produced length.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from ut_keras.decoding.answer import answer
from ut_keras.decoding.decoder import PAD
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import decoder_of, search
from ut_keras.errors import UsageError, UserError

_MOST = 1 << 30  # with a prefix still an int32


def generate(model, ids, max_length=None, **options):
    """Returns a model's answer to a batch, or the n best ones.

    Args:
        model: any model of this package.
        ids: [B, L] or [B, S, W] int inputs, 0 is padding; for a language model the prefixes [B, P], padded
            behind, which may be empty (P = 0).
        max_length: int or [B], from 0 to 2^30, most ids to make, end token included, prefix not; None: L + 100.
        **options: fields of `DecodingOptions`: beam_size, alpha, n_best, temperature, seed, max_steps, ... Greedy
            search without any.

    Returns:
        [B, N] int32 numpy array, 0 after the end token; with n_best > 1 [B, n, N], the best first (a row of zeros where
        there are fewer). A language model's rows begin with their prefix, a classifier's are one id, those of an
        encoder with head="tokens" one id per position.

    Raises:
        UserError: the model does not answer (an encoder alone); ids that are no whole numbers, have too few axes or are
            outside of the vocabulary; a prefix with padding in front of an id; a `max_length` that is none.
        UsageError: an option that does not exist, has a wrong value, or has no meaning for this model.
    """
    options = DecodingOptions.from_dict(options)
    kind = _kind(model)
    _refuse_options(model, kind, options)
    ids = _whole_numbers("ids", ids)
    _refuse_ids(model, kind, ids)
    limits = _limits(ids, max_length)
    # Beside the model, so that both are dropped together, and past Keras' __setattr__, which would track it. Seeds
    # share a function: one for each of a thousand samples would be a thousand graphs.
    compiled = vars(model).setdefault("_generate", {})
    key = dataclasses.replace(options, seed=0), ids.ndim
    if key not in compiled:
        compiled[key] = _compile(model, kind, ids.ndim, options)
    found = compiled[key](ids.astype(np.int32), limits, options.seed).numpy()
    return found if options.n_best > 1 else found[:, 0]


def _whole_numbers(name, values):
    """Returns a numpy array of integers; floats are taken where all are whole, as those of np.zeros are."""
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.all(np.isfinite(array) & (array == np.floor(array))):
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise UserError(f"{name} of type {array.dtype} are not all whole numbers")
    return array


def _limits(ids, max_length):
    """Returns the most ids to make for each row, [B] int32."""
    if max_length is None:
        return np.full(ids.shape[:1], ids.shape[1] + 100, np.int32)
    limits = _whole_numbers("max_length", max_length)
    if limits.shape not in ((), (1,), ids.shape[:1]):
        raise UserError(f"max_length of shape {limits.shape} is neither one number nor one for each of {len(ids)} rows")
    for bad in limits[(limits < 0) | (limits > _MOST)].flat:
        raise UserError(f"max_length={bad} is not between 0 and {_MOST}")
    return np.broadcast_to(limits.astype(np.int32), ids.shape[:1])


def _refuse_options(model, kind, options):
    if kind is None:
        raise UserError(f"{type(model).__name__} gives states, not answers: put a Classifier on it, or head='tokens'")
    if kind == "tokens":
        for field in dataclasses.fields(options):
            value = getattr(options, field.name)
            if field.name != "max_steps" and value != field.default:
                raise UsageError(f"{field.name}={value!r}: an encoder's ids are each the best one, without any search")
    else:
        options.check(kind)


def _refuse_ids(model, kind, ids):
    if ids.ndim not in (2, 2 if kind == "continuation" else 3):
        raise UserError(f"ids of shape {ids.shape}: a batch is [B, L], one row alone [1, L]")
    parts = (model, getattr(model, "encoder", None))
    tables = [getattr(part, name, None) for part in parts for name in ("input_embedding", "embedding")]
    size = next((table.vocabulary_size for table in tables if table is not None), None)
    for bad in () if size is None else ids[(ids < 0) | (ids >= size)].flat:
        raise UserError(f"id {bad} is outside of the vocabulary of {size} ids")
    if kind == "continuation" and np.any((ids[:, :-1] == PAD) & (ids[:, 1:] != PAD)):
        raise UserError("a prefix has padding (id 0) in front of an id: pad on the right, behind each prefix")


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


def _compile(model, kind, rank, options):
    specs = [tf.TensorSpec([None] * axes, tf.int32) for axes in (rank, 1, 0)]

    @tf.function(autograph=False, input_signature=specs)
    def run(ids, limits, seed):
        if kind == "tokens":
            best = tf.argmax(model({"inputs": ids}, max_steps=options.max_steps)[..., 1:], -1, output_type=tf.int32) + 1
            return tf.where(ids != PAD, best, PAD)[:, tf.newaxis]
        if kind == "continuation":
            # An empty prefix is one: the text is made from nothing.
            lengths = tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)
            decoder = decoder_of(model, model.encode({"targets": ids}, max_steps=options.max_steps), options)
            return search(decoder, ids, lengths, lengths + limits, options, seed=seed).ids
        return answer(model, ids, limits, kind, options, seed=seed).ids

    return run
