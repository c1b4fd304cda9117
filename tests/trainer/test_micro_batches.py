"""Dealing rows, and adding up over parts."""

import numpy as np
import tensorflow as tf

from trainer.micro_batches import accumulate, deal


def test_rows_are_dealt_evenly_and_what_is_missing_is_padding():
    ids = tf.constant([[1], [2], [3], [4], [5]])
    assert deal(ids, 0, 2).numpy().ravel().tolist() == [1, 3, 5]
    assert deal(ids, 1, 2).numpy().ravel().tolist() == [2, 4, 0]
    assert deal(ids, 0, 1) is ids
    assert deal(ids[:1], 2, 3).numpy().tolist() == [[0]]
    assert deal(ids[:0], 1, 2).shape == (0, 1)


def test_a_part_may_be_a_tensor_and_static_shapes_stay_static():
    shapes = []

    @tf.function
    def dealt(ids, part):
        rows = deal(ids, part, 2)
        shapes.append(rows.shape.as_list())
        return rows

    ids = tf.reshape(tf.range(1, 31), [5, 3, 2])
    np.testing.assert_array_equal(dealt(ids, tf.constant(1))[:, 0, 0], [7, 19, 0])
    dealt.get_concrete_function(tf.TensorSpec([None, None, 2], tf.int32), tf.constant(1))
    assert shapes == [[3, 3, 2], [None, None, 2]]


def test_every_row_is_in_one_part_and_sums_and_maxima_are_those_of_the_whole():
    batch = {"ids": tf.constant([[3], [1], [4], [1], [5]]), "more": tf.constant([[2], [7], [1], [8], [2]])}

    def measure(rows, number):
        return {"sum": tf.reduce_sum(rows["ids"]), "numbers": tf.one_hot(number, 4)}, tf.reduce_max(rows["more"])

    for parts in (1, 2, 4):
        sums, largest = tf.function(lambda parts=parts: accumulate(measure, batch, parts))()
        assert (int(sums["sum"]), int(largest)) == (14, 8)
        assert sums["numbers"].numpy().tolist() == [1] * parts + [0] * (4 - parts)
