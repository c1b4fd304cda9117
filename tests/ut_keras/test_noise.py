"""Counted random numbers: even, independent, and the same wherever they are drawn."""

import numpy as np
import pytest
import tensorflow as tf

from ut_keras.layers.noise import uniform


@pytest.mark.parametrize("jit_compile", [False, True])
def test_noise_of_a_position_depends_on_no_length_and_is_even(jit_compile):
    noise = tf.function(lambda indices, draw: uniform(0, indices, draw), jit_compile=jit_compile)
    draws = np.stack([noise(tf.range(500), tf.constant(draw)).numpy() for draw in range(20)])
    np.testing.assert_array_equal(noise(tf.range(7), tf.constant(3)), draws[3, :7])
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts, _ = np.histogram(draws, bins=10, range=(0, 1))
    assert np.all(np.abs(counts - 1000) < 150), counts
    correlation = np.corrcoef(np.concatenate([draws[:10], draws[10:]]))
    assert np.abs(correlation - np.eye(20)).max() < 0.2


def test_every_number_and_the_seed_count():
    base = uniform(1, tf.range(4)[:, None], tf.range(3), 5)
    assert base.shape == (4, 3)
    assert len(np.unique(base)) == 12
    for other in (uniform(2, tf.range(4)[:, None], tf.range(3), 5), uniform(1, tf.range(4)[:, None], tf.range(3), 6)):
        assert not (base.numpy() == other.numpy()).any()
