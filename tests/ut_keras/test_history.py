"""Hypotheses read back from the links between positions.

Legend: N capacity, B rows, K hypotheses of a row, n hypotheses that are read.
"""

import numpy as np
import tensorflow as tf

from ut_keras.decoding.history import begin, read, resize, write
from ut_keras.decoding.hypotheses import Alive


def written(places=True):
    """One row: 2 and 3; then 4 behind 3 and 5 behind 2, if hypotheses change places; then 6 and 7 behind these."""
    history = begin(tf.zeros([2, 0]), 2, 3)
    parents = [[0, 1], [1, 0] if places else [0, 1], [0, 1]]
    for position, (ids, before) in enumerate(zip([[2, 3], [4, 5], [6, 7]], parents, strict=True)):
        times = tf.constant([[10.0 * position + 1, 10.0 * position + 2]])
        history = write(history, tf.constant(position), tf.constant([1]), alive(ids, before), times)
    return history


def alive(ids, parents):
    return Alive(tf.zeros([1, 2]), tf.constant([ids]), tf.constant([parents]))


def test_hypotheses_are_followed_to_their_beginning():
    # Row 0 was never written. In row 1: one that ended at place 1 behind hypothesis 1, a whole one, none.
    lengths, last = tf.constant([[0, 0, 0], [2, 3, 0]]), tf.constant([[1, 1, 1], [1, 7, 1]])
    ids, times = read(written(), lengths, last, tf.constant([[0, 0, 0], [1, 1, 1]]), reorders=True)
    np.testing.assert_array_equal(ids, [[[0, 0, 0]] * 3, [[3, 1, 0], [2, 5, 7], [0, 0, 0]]])
    # The ponder times are those of the hypothesis before the choice.
    np.testing.assert_array_equal(times[1], [[2, 12, 0], [1, 11, 22], [0, 0, 0]])


def test_hypotheses_that_keep_their_places_are_read_without_a_walk():
    lengths, last = tf.constant([[0, 0], [3, 2]]), tf.constant([[0, 0], [6, 1]])
    ids, times = read(written(places=False), lengths, last, tf.constant([[0, 0], [0, 1]]), reorders=False)
    np.testing.assert_array_equal(ids[1], [[2, 4, 6], [3, 1, 0]])
    np.testing.assert_array_equal(times[1], [[1, 11, 21], [2, 12, 0]])


def test_resizing_keeps_what_there_is():
    history = written()
    for capacity in (2, 5, 0):
        resized = resize(history, capacity)
        kept = min(capacity, 3)
        for old, new in zip(history, resized, strict=True):
            assert new.shape == (capacity, 2, 2)
            np.testing.assert_array_equal(new[:kept], old[:kept])
            np.testing.assert_array_equal(new[kept:], 0 * new[kept:])


def test_ponder_times_of_what_was_given_belong_to_every_hypothesis():
    history = begin(tf.constant([[3.0, 4.0]]), 2, 4)
    np.testing.assert_array_equal(history.ponder_times[:, 0], [[3, 3], [4, 4], [0, 0], [0, 0]])
