"""Greedy search: at each position the most probable id, for a whole batch inside one graph.

Shapes: B batch, L source length, P prefix length, M target length, N produced length, V vocabulary_size.
Lengths count the end token.
"""

import typing

import tensorflow as tf

PAD = 0
EOS = 1


class Greedy(typing.NamedTuple):
    """What greedy search found.

    Attributes:
        ids: [B, N] int32, a prefix included; 0 after the end token. N is the longest row's length.
        log_probability: [B] float32, summed over the produced ids (end token included, prefix not).
    """

    ids: tf.Tensor
    log_probability: tf.Tensor


def greedy(model, x, max_length, max_steps=None, memory=None):
    """Decodes a batch greedily.

    The encoder runs once; the decoder runs over the growing targets. A row ends with its end token or
    at its own limit and is padding from there on; the search ends when all rows have ended. A row's
    result does not depend on its batch mates. Padding (id 0) is never chosen.

    Args:
        model: has `encode(x, max_steps) -> memory` and
            `decode(targets [B, M], memory, max_steps, last) -> logits [B, M, V]`, where position i predicts
            targets[i] from targets[<i]; with `last` [B, 1, V], the last position's, which is all that is looked at.
        x: {"inputs": [B, L] int}, and / or {"targets": [B, P] int}: a prefix per row (0 is padding
            behind it) that the result starts with; a language model takes `targets` alone.
        max_length: int, or [B] int: most ids of a row, prefix and end token included. A row of limit
            0 stays empty; a prefix longer than the limit is returned as it is.
        max_steps: recurrent steps at most, for elastic depth; None: the model's own.
        memory: what `model.encode` returned for x, where the caller has it; None: it is called here.

    Returns:
        `Greedy(ids, log_probability)`.

    Source: T2T `T2TModel._greedy_infer`, here with an end of its own for each row of a batch.
    """
    if memory is None:
        memory = model.encode(x, max_steps=max_steps)
    batch = tf.shape(x["inputs"] if "inputs" in x else x["targets"])[0]
    prefix = tf.cast(x["targets"], tf.int32) if "targets" in x else tf.zeros([batch, 0], tf.int32)
    given_lengths = tf.reduce_sum(tf.cast(prefix != PAD, tf.int32), axis=1)
    limits = tf.maximum(tf.broadcast_to(tf.cast(max_length, tf.int32), [batch]), given_lengths)
    longest = tf.reduce_max(tf.concat([limits, [0]], axis=0))
    prefix = tf.pad(prefix, [[0, 0], [0, tf.maximum(longest - tf.shape(prefix)[1], 0)]])

    def alive(ids, ended):
        return tf.logical_and(tf.logical_not(ended), tf.shape(ids)[1] < limits)

    def condition(ids, log_probability, ended):
        return tf.reduce_any(alive(ids, ended))

    def body(ids, log_probability, ended):
        running = alive(ids, ended)
        # The id at the position to predict is not read; it must not be padding, which models leave out.
        unknown = tf.cast(running, tf.int32)[:, tf.newaxis]
        logits = model.decode(tf.concat([ids, unknown], axis=1), memory, max_steps=max_steps, last=True)
        log_probabilities = tf.nn.log_softmax(tf.cast(logits[:, -1], tf.float32))
        best = tf.argmax(log_probabilities[:, 1:], axis=-1, output_type=tf.int32) + 1
        given = prefix[:, tf.shape(ids)[1]]
        chosen = tf.where(running, tf.where(given != PAD, given, best), PAD)
        gained = tf.gather(log_probabilities, chosen, batch_dims=1)
        log_probability += tf.where(tf.logical_and(running, given == PAD), gained, 0.0)
        # An end token inside of a prefix is one of its ids; the last id of a prefix may end the row.
        ends = tf.logical_and(chosen == EOS, tf.shape(ids)[1] + 1 >= given_lengths)
        return tf.concat([ids, chosen[:, tf.newaxis]], axis=1), log_probability, tf.logical_or(ended, ends)

    # What all rows are given needs no search.
    shortest = tf.reduce_min(tf.concat([given_lengths, [longest]], axis=0))
    begun = prefix[:, :shortest]
    closed = tf.logical_and(given_lengths == shortest, tf.reduce_any(begun[:, -1:] == EOS, axis=1))
    start = begun, tf.zeros([batch], tf.float32), closed
    shapes = tf.TensorShape([None, None]), tf.TensorShape([None]), tf.TensorShape([None])
    ids, log_probability, _ = tf.while_loop(condition, body, start, shape_invariants=shapes)
    return Greedy(ids, log_probability)
