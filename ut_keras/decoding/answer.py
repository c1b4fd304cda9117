"""A model's answer to a batch of inputs, whatever its kind: a decoded sequence, a class, or the continuation of a text.

Shapes: B batch, L source length (S sentences of W words where inputs are [B, S, W]), P prompt length, N produced
length.
"""

import typing

import tensorflow as tf

from ut_keras.decoding.greedy import PAD, greedy


class Answer(typing.NamedTuple):
    """What a model answers.

    Attributes:
        ids: [B, N] int32, 0 after the end token; a class is one id (N = 1); a language model's prompt is no part of
            it. All 0 for empty inputs.
        scores: [B] float32, natural logarithm of the probability of `ids`; 0 for empty inputs.
        ponder_times: {"encoder": [B, L]} float32, steps taken at each position (1 by models without
            recurrence), 0 at padding; with "decoder": [B, N] where it was asked for and there is one. Of a language
            model {"decoder": [B, N]} where it was asked for, else {}.
    """

    ids: tf.Tensor
    scores: tf.Tensor
    ponder_times: dict


def answer(model, inputs, limits, target, decoder_ponder=False, max_steps=None):
    """Answers a batch; an example of nothing but padding is answered with nothing.

    Args:
        model: a model with inputs: `encode(x) -> memory`, a dictionary, with "ponder_times" [B, L] in it where
            the encoder is recurrent; `classify(memory) -> [B, V]` for a class, what `greedy` needs for a sequence.
            For a continuation a language model, which `greedy` gives prompts as the beginning of its targets.
        inputs: [B, L] or [B, S, W] int32, 0 is padding; the prompts [B, P] of a language model.
        limits: [B] int32, most ids of each answer, end token included; a class needs none.
        target: "sequence", "class" or "continuation" (`kind_of`).
        decoder_ponder: also return the decoder's ponder times; costs one more pass.
        max_steps: recurrent steps at most, for elastic depth; None: the model's own.
    """
    if target == "continuation":
        return _continuation(model, inputs, limits, decoder_ponder, max_steps)
    x = {"inputs": inputs}
    real = tf.reduce_any(inputs != PAD, axis=-1) if len(inputs.shape) == 3 else inputs != PAD
    filled = tf.reduce_any(real, axis=1)
    memory = model.encode(x, max_steps=max_steps)
    ponder_times = {"encoder": tf.cast(memory.get("ponder_times", real), tf.float32)}
    if target == "class":
        ids, scores = _best_class(tf.cast(model.classify(memory), tf.float32), filled)
        return Answer(ids, scores, ponder_times)
    ids, scores = greedy(model, x, tf.where(filled, limits, 0), max_steps, memory)
    if decoder_ponder:
        ponder = model({**x, "targets": ids}, training=False, return_ponder=True, max_steps=max_steps)[1]
        ponder_times.update({side: trace.ponder_times for side, trace in ponder.items()})
    return Answer(ids, scores, ponder_times)


def kind_of(features):
    """Returns how a model of these `ut_keras.hparams.Features` answers: "sequence", "class" or "continuation"."""
    return features.target if features.input_vocabulary_size else "continuation"


def continued(model, prompts, limits, max_steps=None):
    """Returns what `greedy` makes of prompts [B, P] int32: [B, P + N] ids that begin with them, and log-probabilities.

    `limits` [B] count the produced ids, end token included. An empty prompt stays empty.
    """
    lengths = _lengths(prompts)
    return greedy(model, {"targets": prompts}, tf.where(lengths > 0, lengths + limits, 0), max_steps)


def text_ponder_times(model, ids, max_steps=None):
    """Returns the steps a language model took to predict each of `ids` [B, N]: [B, N] float32, 0 at padding."""
    ponder = model({"targets": ids}, training=False, return_ponder=True, max_steps=max_steps)[1]
    real = tf.cast(ids != PAD, tf.float32)
    return real * ponder["decoder"].ponder_times if "decoder" in ponder else real


def _continuation(model, prompts, limits, decoder_ponder, max_steps):
    lengths = _lengths(prompts)
    ids, scores = continued(model, prompts, limits, max_steps)
    times = {"decoder": after_prompt(text_ponder_times(model, ids, max_steps), lengths)} if decoder_ponder else {}
    return Answer(after_prompt(ids, lengths), scores, times)


def _lengths(ids):
    return tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)


def after_prompt(values, lengths):
    """Returns values [B, P + N] from place lengths[b] of row b on, 0 behind its end: [B, N], N at least 1."""
    size = tf.shape(values)[1]
    # At least one column, so that the shape is one that every decoder of ids takes.
    width = tf.maximum(size - tf.reduce_min(tf.concat([lengths, size[tf.newaxis]], axis=0)), 1)
    places = lengths[:, tf.newaxis] + tf.range(width)
    padded = tf.pad(values, [[0, 0], [0, 1]])
    return tf.gather(padded, tf.minimum(places, size), batch_dims=1)


def _best_class(logits, filled):
    """logits: [B, V], filled: [B] bool. Padding is no class."""
    log_probabilities = tf.nn.log_softmax(logits)
    best = tf.argmax(log_probabilities[:, 1:], axis=-1, output_type=tf.int32) + 1
    scores = tf.gather(log_probabilities, best, batch_dims=1)
    return tf.where(filled, best, PAD)[:, tf.newaxis], tf.where(filled, scores, 0.0)


def compile_answer(model, features, decoder_ponder=False):
    """Returns `answer` of one model as a compiled function of (inputs int32, limits [B] int32).

    It is traced once, for every batch size and length. It holds the model: keep it beside the model
    and drop both together.

    Args:
        model: the model.
        features: `ut_keras.hparams.Features` of the problem that the model was built for.
        decoder_ponder: as for `answer`.
    """
    inputs = tf.TensorSpec([None] * (3 if features.words_per_sentence else 2), tf.int32)
    kind = kind_of(features)

    @tf.function(input_signature=[inputs, tf.TensorSpec([None], tf.int32)])
    def answers(inputs, limits):
        return answer(model, inputs, limits, kind, decoder_ponder)

    return answers
