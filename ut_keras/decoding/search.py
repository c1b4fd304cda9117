"""From a decoder to the best hypotheses of each row: greedy search, sampling and beam search through one door.

Legend: B rows, K hypotheses of a row, n hypotheses that are returned, P prefix length, N length.
"""

import typing

import tensorflow as tf

from ut_keras.decoding import history as histories
from ut_keras.decoding import stages as staged
from ut_keras.decoding.beam import Beam
from ut_keras.decoding.decoder import EOS
from ut_keras.decoding.greedy import Greedy
from ut_keras.decoding.hypotheses import NONE, Rows
from ut_keras.decoding.penalty import length_penalty
from ut_keras.decoding.recomputed import RecomputedDecoder
from ut_keras.decoding.sampling import Sampling
from ut_keras.errors import UserError


class Hypotheses(typing.NamedTuple):
    """The best hypotheses of each row, best first; each one that has ended before each one cut at the row's limit.

    A hypothesis that does not exist is of zeros, with -inf twice. That of a row that had nothing to search (no room
    behind its prefix) is the prefix, with 0 twice.

    Attributes:
        ids: [B, n, N] int32, the prefix included, 0 behind the end. N is the longest one's length.
        log_probability: [B, n] float32, natural logarithm of the probability of the ids that were produced.
        score: [B, n] float32, of a beam the same over the length penalty; else the same.
        ponder_times: [B, n, N] float32, steps taken to predict each of the ids; 0 behind the end, and everywhere in
            rows that had nothing to search.
    """

    ids: tf.Tensor
    log_probability: tf.Tensor
    score: tf.Tensor
    ponder_times: tf.Tensor


def search(decoder, prefix, lengths, limits, options, keys=None, stages=True, longest=None, seed=None):
    """Searches for the best continuations of each row's prefix.

    A row's result does not depend on its batch mates (but with `options.coupled_stop`).

    Args:
        decoder: a `Decoder` of B rows.
        prefix: [B, P] int32, what each row begins with, 0 behind it; P may be 0.
        lengths: [B] int32, how many ids of it are given.
        limits: [B] int32, most ids of a hypothesis, prefix and end token included. A row of limit 0 stays empty; a
            prefix at or above the limit, and one that ends with an end token, comes back as it is. An end token
            further in front is an id like others.
        options: `DecodingOptions`.
        keys: [B] int32, who each row is: its samples depend on its key and the seed. None: 0, 1, 2, ...
        seed: scalar int32 of the sampling; None: that of the options, a constant of the graph.
        stages, longest: see `stages.run`. With stages=False and `longest` it compiles with XLA (not the
            decoder without a cache, which sees more positions each time), and N is `longest`.

    Returns:
        `Hypotheses`.

    Raises:
        UsageError: `options` ask for more hypotheses than they search for.
    """
    options.check("sequence")
    keys = tf.range(tf.shape(prefix)[0]) if keys is None else keys
    rows = Rows(*(tf.cast(values, tf.int32) for values in (lengths, limits, keys)))
    if options.beam_size > 1:
        step = Beam(options)
    else:
        step = Sampling(options, seed) if options.temperature else Greedy(ends=not options.coupled_stop)
    state, history = staged.run(decoder, step, prefix, rows, stages, longest)
    return best_of(state, history, step, prefix, rows, options, longest)


def best_of(state, history, step, prefix, rows, options, longest=None):
    """Returns the `Hypotheses` that a search has found: what `stages.run` returned, and what it was given."""
    best = _ranked(state, rows, options)
    lengths = best.lengths
    width = tf.reduce_max(tf.pad(lengths, [[1, 0], [0, 0]])) if longest is None else max(longest, prefix.shape[1], 1)
    history = histories.resize(history, width)
    ids, times = histories.read(history, lengths, best.last, best.parents, step.reorders)
    given = tf.pad(prefix[:, :width], [[0, 0], [0, tf.maximum(width - tf.shape(prefix)[1], 0)]])
    is_given = tf.range(width) < tf.minimum(rows.lengths[:, tf.newaxis, tf.newaxis], lengths[..., tf.newaxis])
    has_run = state.lengths > rows.lengths
    return Hypotheses(
        ids=tf.where(is_given, given[:, tf.newaxis], ids),
        log_probability=best.log_probability,
        score=best.score,
        ponder_times=tf.where(has_run[:, tf.newaxis, tf.newaxis], times, 0.0),
    )


class _Ranked(typing.NamedTuple):
    """Hypotheses in order, each [B, n]; the last two say how `history.read` finds their ids."""

    score: tf.Tensor
    log_probability: tf.Tensor
    lengths: tf.Tensor
    last: tf.Tensor
    parents: tf.Tensor


def _ranked(state, rows, options):
    """Returns the `n_best` of the finished hypotheses by score, and behind them of those that are alive."""
    finished, alive = state.finished, state.alive
    score = alive.log_probability
    if options.beam_size > 1:
        score /= length_penalty(state.lengths - rows.lengths, options.alpha)[:, tf.newaxis]
    if options.coupled_stop:
        # T2T's form of a row in which nothing has ended.
        none = tf.reduce_all(finished.score == NONE, axis=1, keepdims=True)
        score = tf.where(none, alive.log_probability, score)
    lengths = tf.broadcast_to(state.lengths[:, tf.newaxis], tf.shape(score))
    ends = tf.fill(tf.shape(score), EOS)
    groups = (
        _Ranked(finished.score, finished.log_probability, finished.lengths, ends, finished.parents),
        _Ranked(score, alive.log_probability, lengths, alive.ids, alive.parents),
    )
    groups = [_take(group, tf.argsort(group.score, direction="DESCENDING", stable=True)) for group in groups]
    both = _Ranked(*(tf.concat(values, axis=1) for values in zip(*groups, strict=True)))
    missing = both.score == NONE
    both = both._replace(lengths=tf.where(missing, 0, both.lengths))
    order = tf.argsort(tf.cast(missing, tf.int32), stable=True)
    return _take(both, order[:, : options.n_best])


def _take(ranked, order):
    return _Ranked(*(tf.gather(values, order, batch_dims=1) for values in ranked))


def decoder_of(model, memory, options):
    """Returns the decoder of a model's answers to a batch.

    Args:
        model: has `decode`, see `RecomputedDecoder`, or also `start_decoding(memory, max_steps) -> Decoder`.
        memory: what `model.encode` returned.
        options: `DecodingOptions`: `max_steps`, and whether the decoder shall be `cached` where the model can do it.

    Raises:
        UserError: the model cannot be decoded with a cache, or not by T2T's rules; the message says why, and what to
            do.
    """
    halting = getattr(getattr(getattr(model, "decoder", None), "body", None), "halting", None)
    if options.coupled_stop and halting is not None and not halting.count_padding:
        raise UserError(
            f"coupled_stop={options.coupled_stop!r} may produce padding, on which this model's halting takes no step: "
            "leave it out, or train with act_count_padding=True as tensor2tensor does"
        )
    if options.cached and hasattr(model, "start_decoding"):
        return model.start_decoding(memory, options.max_steps)
    return RecomputedDecoder(model, memory, options.max_steps)
