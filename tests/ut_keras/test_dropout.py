"""Stateless dropout and its seeds."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from ut_keras.layers.dropout import dropout, fold_seed

SEED = tf.constant([7, 3])


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_of_zeros_is_the_rate_and_the_mean_stays(rate):
    dropped = dropout(tf.ones([200, 501]), rate, SEED).numpy()
    assert abs(np.mean(dropped == 0) - rate) < 0.01
    kept = dropped[dropped != 0]
    np.testing.assert_allclose(kept, 1 / (1 - rate), rtol=1e-4)
    assert abs(dropped.mean() - 1) < 0.03


def test_mask_is_a_function_of_the_seed():
    x = tf.ones([40, 25])
    np.testing.assert_array_equal(dropout(x, 0.5, SEED), dropout(x, 0.5, SEED))
    assert np.mean(dropout(x, 0.5, SEED) != dropout(x, 0.5, fold_seed(SEED, 0))) > 0.4


def test_halves_of_a_random_word_are_independent():
    kept = dropout(tf.ones([20000]), 0.5, SEED).numpy() != 0
    assert abs(np.corrcoef(kept[::2], kept[1::2])[0, 1]) < 0.03


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_without_a_seed_or_a_rate_nothing_is_dropped(rate):
    x = tf.constant([1.0, 2.0, 3.0])
    assert dropout(x, rate, None) is x
    assert dropout(x, 0.0, SEED) is x


def test_gradient_goes_where_the_mask_lets_through():
    x = tf.ones([64])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dropout(x, 0.25, SEED)
    np.testing.assert_allclose(tape.gradient(y, x), y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_types_keep_their_type(dtype):
    y = dropout(tf.ones([5, 3], dtype), 0.5, SEED)
    assert y.dtype == dtype
    assert set(np.unique(tf.cast(y, "float32"))) <= {0.0, 2.0}


def test_folded_seed_of_none_is_none():
    assert fold_seed(None, 3) is None


def test_every_step_block_and_place_has_a_seed_of_its_own():
    """Folding must not commute: place 2 of step 1 would share its mask with place 1 of step 2."""
    parts = np.array(list(itertools.product((1, 2), range(-1, 12), range(2), range(6))), "int32")
    seeds = set()
    for call in ([7, 3], [7, 4], [7, 5], [7, 6], [8, 3]):
        many = tf.constant(call)[:, None] + tf.zeros([1, len(parts)], tf.int32)
        for numbers in parts.T:
            many = fold_seed(many, tf.constant(numbers))
        seeds |= set(zip(*many.numpy().tolist()))
    assert len(seeds) == 5 * len(parts)


def test_fold_is_the_same_for_a_number_and_a_tensor_in_graph_and_xla():
    expected = fold_seed(SEED, -3).numpy().tolist()
    for jit_compile in (False, True):
        fold = tf.function(lambda seed, number: fold_seed(seed, number), jit_compile=jit_compile)
        assert fold(SEED, tf.constant(-3)).numpy().tolist() == expected
