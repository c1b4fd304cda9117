"""What a search keeps of the hypotheses of each row while it goes on.

Legend: b rows, K hypotheses of a row. A log-probability of -inf says that there is no such hypothesis.
"""

import typing

import tensorflow as tf

from ut_keras.decoding.decoder import EOS

NONE = float("-inf")


class Rows(typing.NamedTuple):
    """What is known of the rows before the search, each [b] int32.

    Attributes:
        lengths: ids that are given, the row's prefix.
        limits: most ids of a hypothesis, the prefix and the end token included.
        keys: who the row is, for sampling.
    """

    lengths: tf.Tensor
    limits: tf.Tensor
    keys: tf.Tensor


class Alive(typing.NamedTuple):
    """Hypotheses that have not ended, each [b, K].

    Attributes:
        log_probability: float32, of the ids that were produced, not of the prefix.
        ids: int32, the last id of each.
        parents: int32, the hypothesis of the position before that it continues.
    """

    log_probability: tf.Tensor
    ids: tf.Tensor
    parents: tf.Tensor


class Finished(typing.NamedTuple):
    """Hypotheses that have ended with the end token, each [b, K].

    Attributes:
        score: float32, the log-probability over the length penalty, where the search has one.
        log_probability: float32.
        lengths: int32, all ids, prefix and end token included.
        parents: int32, the hypothesis of the position of its end token that it continues.
    """

    score: tf.Tensor
    log_probability: tf.Tensor
    lengths: tf.Tensor
    parents: tf.Tensor


def nothing_finished(rows, beams):
    """Returns `Finished` of so many rows (scalar int32), in which there is none."""
    none, zeros = tf.fill([rows, beams], NONE), tf.zeros([rows, beams], tf.int32)
    return Finished(none, none, zeros, zeros)


def first_alive(rows, beams, all_alive):
    """Returns `Alive` at the beginning of so many rows: the first hypothesis, or all of them.

    The hypotheses of a beam have to differ: it begins with one, and its first step fills the others.
    """
    first = [0.0] * beams if all_alive else [0.0] + [NONE] * (beams - 1)
    return Alive(
        tf.tile(tf.constant([first]), [rows, 1]),
        tf.zeros([rows, beams], tf.int32),
        tf.tile(tf.range(beams)[tf.newaxis], [rows, 1]),
    )


def go_on(alive, finished, ids, gained, position, ends=True):
    """Continues each hypothesis with one id, and keeps those apart that end with it.

    Args:
        alive, finished: `Alive` and `Finished` before.
        ids: [b, K] int32.
        gained: [b, K] float32, their log-probabilities.
        position: scalar int32, where they stand.
        ends: False: the end token is an id like others.

    Returns:
        (Alive, Finished) after; hypothesis k stays at place k.
    """
    log_probability = alive.log_probability + gained
    after = alive._replace(log_probability=log_probability, ids=ids)
    if not ends:
        return after, finished
    ended = (ids == EOS) & (log_probability > NONE)
    finished = Finished(
        tf.where(ended, log_probability, finished.score),
        tf.where(ended, log_probability, finished.log_probability),
        tf.where(ended, position + 1, finished.lengths),
        tf.where(ended, alive.parents, finished.parents),
    )
    return after._replace(log_probability=tf.where(ended, NONE, log_probability)), finished
