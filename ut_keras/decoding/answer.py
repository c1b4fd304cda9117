"""A model's answer to a batch of inputs, whatever its kind: a decoded sequence, a class, or the continuation of a text.

Legend: B batch, L source length (S sentences of W words where inputs are [B, S, W]), P prompt length, n hypotheses,
N produced length, V vocabulary size.
"""

import typing

import tensorflow as tf

from ut_keras.decoding.decoder import PAD
from ut_keras.decoding.hypotheses import NONE
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import decoder_of, search

DEFAULT = DecodingOptions()


class Answer(typing.NamedTuple):
    """What a model answers: the n best hypotheses of each row, best first.

    Attributes:
        ids: [B, n, N] int32, 0 after the end token, N at least 1; a class is one id (N = 1); a language model's prompt
            is no part of it. All 0 for empty inputs, and where there are fewer than n hypotheses.
        log_probability: [B, n] float32, natural logarithm of the probability of `ids`; 0 for empty inputs; -inf
            where there is no hypothesis.
        scores: [B, n] float32, what the hypotheses are ranked by: `log_probability`, of a beam divided by the length
            penalty.
        ponder_times: {"encoder": [B, L], "decoder": [B, n, N]} float32, steps taken at each position (1 by models
            without recurrence), 0 at padding and where nothing was searched for. A class has no "decoder", a language
            model "prompt" [B, P] in place of "encoder".
    """

    ids: tf.Tensor
    log_probability: tf.Tensor
    scores: tf.Tensor
    ponder_times: dict


def kind_of(features):
    """Returns how a model of these `ut_keras.hparams.Features` answers: "sequence", "class" or "continuation"."""
    return features.target if features.input_vocabulary_size else "continuation"


def answer(model, inputs, limits, kind, options=DEFAULT, keys=None, seed=None):
    """Answers a batch; an example of nothing but padding is answered with nothing, and costs nothing.

    Args:
        model: a model with inputs: `encode(x, max_steps) -> memory`, a dictionary, with "ponder_times" [B, L] in it
            where the encoder is recurrent; `classify(memory) -> [B, V]` for a class, what `decoder_of` needs for a
            sequence. For a continuation a language model.
        inputs: [B, L] or [B, S, W] int32, 0 is padding; the prompts [B, P] of a language model.
        limits: [B] int32, most ids of each answer, end token included, prompt not; a class needs none.
        kind: "sequence", "class" or "continuation" (`kind_of`).
        options: `DecodingOptions`.
        keys: [B] int32, who each row is, for sampling: see `search`. None: 0, 1, 2, ...
        seed: scalar int32 of the sampling; None: that of the options.

    Returns:
        `Answer`.

    Raises:
        UsageError: `options` that such an answer has no use for.
    """
    options.check(kind)
    keys = tf.range(tf.shape(inputs)[0]) if keys is None else keys
    real = tf.reduce_any(inputs != PAD, axis=-1) if len(inputs.shape) == 3 else inputs != PAD
    filled = tf.cast(tf.where(tf.reduce_any(real, axis=1))[:, 0], tf.int32)
    rows = [tf.gather(values, filled) for values in (inputs, real, limits, keys)]
    answers = {"sequence": _sequence, "class": _class, "continuation": _continuation}[kind]
    return _spread(answers(model, *rows, options, seed), filled, tf.shape(inputs)[0])


def _sequence(model, inputs, real, limits, keys, options, seed):
    x = {"inputs": inputs}
    memory = model.encode(x, max_steps=options.max_steps)
    decoder = decoder_of(model, memory, options)
    begun = tf.zeros([tf.shape(inputs)[0], 0], tf.int32)
    found = search(decoder, begun, tf.zeros_like(limits), limits, options, keys, seed=seed)
    ids, times = _one_at_least(found.ids), _one_at_least(found.ponder_times)
    ponder_times = {"encoder": tf.cast(memory.get("ponder_times", real), tf.float32), "decoder": times}
    return Answer(ids, found.log_probability, found.score, ponder_times)


def _class(model, inputs, real, limits, keys, options, seed):
    memory = model.encode({"inputs": inputs}, max_steps=options.max_steps)
    log_probabilities = tf.nn.log_softmax(tf.cast(model.classify(memory), tf.float32))
    classes = log_probabilities[:, 1:]  # padding is none
    more = tf.maximum(options.n_best - tf.shape(classes)[1], 0)
    classes = tf.pad(classes, [[0, 0], [0, more]], constant_values=NONE)
    scores, ids = tf.math.top_k(classes, options.n_best)
    ids = tf.where(scores == NONE, PAD, ids + 1)
    ponder_times = {"encoder": tf.cast(memory.get("ponder_times", real), tf.float32)}
    return Answer(ids[..., tf.newaxis], scores, scores, ponder_times)


def _continuation(model, prompts, real, limits, keys, options, seed):
    lengths = tf.reduce_sum(tf.cast(real, tf.int32), axis=1)
    decoder = decoder_of(model, model.encode({"targets": prompts}, max_steps=options.max_steps), options)
    found = search(decoder, prompts, lengths, lengths + limits, options, keys, seed=seed)
    width = tf.shape(prompts)[1]
    times = tf.pad(found.ponder_times[:, 0], [[0, 0], [0, width]])[:, :width]
    ponder_times = {
        "prompt": tf.where(real, times, 0.0),
        "decoder": after_prompt(found.ponder_times, lengths),
    }
    return Answer(after_prompt(found.ids, lengths), found.log_probability, found.score, ponder_times)


def after_prompt(values, lengths):
    """Returns values [B, n, P + N] from place lengths[b] of row b on, 0 behind its end: [B, n, N], N at least 1."""
    size = tf.shape(values)[2]
    width = tf.maximum(size - tf.reduce_min(tf.concat([lengths, size[tf.newaxis]], axis=0)), 1)
    places = tf.minimum(lengths[:, tf.newaxis] + tf.range(width), size)
    places = tf.broadcast_to(places[:, tf.newaxis], [*tf.unstack(tf.shape(values)[:2]), width])
    return tf.gather(tf.pad(values, [[0, 0], [0, 0], [0, 1]]), places, batch_dims=2)


def _one_at_least(values):
    """[B, n, N] with N at least 1: a shape that every decoder of ids takes."""
    return tf.pad(values, [[0, 0], [0, 0], [0, tf.maximum(1 - tf.shape(values)[2], 0)]])


def _spread(found, rows, batch):
    """Returns the `Answer` of a batch from that of some of its rows; the others' is nothing, of probability 1."""

    def spread(values, fill=0):
        shape = [batch, *tf.unstack(tf.shape(values))[1:]]
        base = tf.broadcast_to(tf.cast(fill, values.dtype), shape)
        spread = tf.tensor_scatter_nd_update(base, rows[:, tf.newaxis], values)
        return tf.ensure_shape(spread, [None, *values.shape[1:]])

    missing = tf.where(tf.range(tf.shape(found.scores)[1]) == 0, 0.0, NONE)
    return Answer(
        spread(found.ids),
        spread(found.log_probability, missing),
        spread(found.scores, missing),
        {side: spread(times) for side, times in found.ponder_times.items()},
    )


def compile_answer(model, features, options=DEFAULT):
    """Returns `answer` of one model as a compiled function of (inputs int32, limits [B] int32, keys=None).

    It is traced once, for every batch size and length. It holds the model: keep it beside the model
    and drop both together.

    Args:
        model: the model.
        features: `ut_keras.hparams.Features` of the problem that the model was built for.
        options: `DecodingOptions`.

    Raises:
        UsageError: as `answer`.
    """
    return CompiledAnswer(model, kind_of(features), 3 if features.words_per_sentence else 2, options)


class CompiledAnswer:
    """`answer` of one model, compiled; see `compile_answer`.

    Args:
        model, kind, options: as for `answer`.
        rank: axes of the inputs, 2 or 3.

    Attributes:
        function: the `tf.function` of (inputs, limits, keys).
    """

    def __init__(self, model, kind, rank, options=DEFAULT):
        options.check(kind)
        rows = tf.TensorSpec([None], tf.int32)

        @tf.function(autograph=False, input_signature=[tf.TensorSpec([None] * rank, tf.int32), rows, rows])
        def answers(inputs, limits, keys):
            return answer(model, inputs, limits, kind, options, keys)

        self.function = answers

    def __call__(self, inputs, limits, keys=None):
        """Returns the `Answer` to a batch; see `answer`."""
        if keys is None:
            keys = tf.range(tf.shape(inputs)[0])
        return self.function(inputs, limits, keys)

    def experimental_get_tracing_count(self):
        """Returns how often the function was traced."""
        return self.function.experimental_get_tracing_count()
