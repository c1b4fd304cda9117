"""Writes into a loop's variable: right, differentiable, and in place."""

import time

import numpy as np
import pytest
import tensorflow as tf

from ut_keras.layers.inplace import put, put_entry


def test_put_writes_a_part_and_keeps_the_rest():
    kept = tf.reshape(tf.range(24.0), [2, 3, 4])
    expected = kept.numpy()
    expected[1, 1:3] = -1.0
    np.testing.assert_array_equal(put(kept, tf.fill([1, 2, 4], -1.0), tf.constant([1, 1, 0])), expected)
    expected[0] = 7.0
    written = put(kept, tf.fill([1, 2, 4], -1.0), tf.constant([1, 1, 0]))
    np.testing.assert_array_equal(put_entry(written, tf.fill([3, 4], 7.0), tf.constant(0)), expected)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_put_writes_the_same_in_a_compiled_loop(jit_compile):
    @tf.function(jit_compile=jit_compile)
    def write(kept):
        def body(index, kept):
            return index + 1, put(kept, tf.fill([1, 2, 4], tf.cast(index, tf.float32)), tf.stack([index, 1, 0]))

        return tf.while_loop(lambda index, _: index < 2, body, (tf.constant(0), kept))[1]

    expected = np.full([2, 3, 4], 7.0)
    expected[0, 1:], expected[1, 1:] = 0.0, 1.0
    np.testing.assert_array_equal(write(tf.fill([2, 3, 4], 7.0)), expected)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_put_is_differentiable_and_compiles(jit_compile):
    @tf.function(jit_compile=jit_compile)
    def gradients(kept, value):
        with tf.GradientTape() as tape:
            tape.watch([kept, value])
            total = tf.reduce_sum(put_entry(kept, value, tf.constant(1)) * tf.constant([[1.0], [2.0], [3.0]]))
        return tape.gradient(total, [kept, value])

    of_kept, of_value = gradients(tf.ones([3, 2]), tf.ones([2]))
    np.testing.assert_array_equal(of_kept, [[1, 1], [0, 0], [3, 3]])
    np.testing.assert_array_equal(of_value, [2, 2])


def seconds(entries, writes=200):
    """Time of so many writes of one row into a tensor [entries, 1024]; the least of some runs."""

    @tf.function
    def write(kept):
        def body(index, kept):
            row = tf.fill([1024], tf.cast(index, tf.float32)) + 0.0 * kept[index][:1]
            return index + 1, put_entry(kept, row, index)

        return tf.while_loop(lambda index, _: index < writes, body, (tf.constant(0), kept + 1.0))[1][0, 0]

    kept, taken = tf.zeros([entries, 1024]), []
    for _ in range(6):
        start = time.perf_counter()
        write(kept).numpy()
        taken.append(time.perf_counter() - start)
    return min(taken[1:])


def test_a_write_in_a_loop_costs_the_same_however_large_the_tensor_is():
    """64 times the memory, 64 MB: copying it in each of 200 writes would move 12.8 GB."""
    small, large = seconds(256), seconds(16384)
    assert large - small < 0.8, (small, large)
