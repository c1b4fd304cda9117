"""Sampling: which ids may be drawn, how often, and what a draw depends on.

Legend: B rows, K samples of a row, V vocabulary size.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.table_decoder import TableDecoder, log_probability
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.sampling import draw, uniform
from ut_keras.decoding.search import search

LOGITS = np.log([0.1, 0.4, 0.2, 0.3]).astype("float32")


def frequencies(count=4000, logits=LOGITS, **options):
    """How often each id is drawn, of evenly spaced noise."""
    noise = (np.arange(count, dtype="float32") + 0.5) / count
    ids = draw(tf.tile(tf.constant(logits)[None, None], [1, count, 1]), noise[None], **options).numpy()
    return np.bincount(ids[0], minlength=len(logits)) / count


def test_ids_are_drawn_with_their_probabilities():
    np.testing.assert_allclose(frequencies(temperature=1.0), [0.1, 0.4, 0.2, 0.3], atol=1e-3)


def test_temperature_flattens_and_sharpens():
    powers = np.array([0.1, 0.4, 0.2, 0.3]) ** 2
    np.testing.assert_allclose(frequencies(temperature=0.5), powers / powers.sum(), atol=1e-3)
    np.testing.assert_allclose(frequencies(temperature=1e9), [0.25] * 4, atol=1e-3)
    for temperature in (1e-3, 1e-30):
        np.testing.assert_array_equal(frequencies(temperature=temperature), [0, 1, 0, 0])


def test_top_k_leaves_the_most_probable_ids():
    np.testing.assert_allclose(frequencies(temperature=1.0, top_k=2), [0, 4 / 7, 0, 3 / 7], atol=1e-3)
    np.testing.assert_array_equal(frequencies(temperature=1.0, top_k=1), [0, 1, 0, 0])
    np.testing.assert_allclose(frequencies(temperature=1.0, top_k=99), [0.1, 0.4, 0.2, 0.3], atol=1e-3)


def test_top_p_leaves_the_smallest_set_that_reaches_it():
    for top_p, expected in ((0.4, [0, 1, 0, 0]), (0.41, [0, 4 / 7, 0, 3 / 7]), (0.69, [0, 4 / 7, 0, 3 / 7])):
        np.testing.assert_allclose(frequencies(temperature=1.0, top_p=top_p - 1e-3), expected, atol=1e-3)
    np.testing.assert_allclose(frequencies(temperature=1.0, top_p=0.95), [0.1, 0.4, 0.2, 0.3], atol=1e-3)
    # Of the two that top_k leaves, the better one has 4/7 of the probability.
    np.testing.assert_array_equal(frequencies(temperature=1.0, top_k=2, top_p=0.5), [0, 1, 0, 0])


def test_of_equally_probable_ids_the_lower_one_stays():
    np.testing.assert_array_equal(frequencies(logits=np.zeros(3, "float32"), temperature=1.0, top_k=1), [1, 0, 0])


@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"top_p": 0.999999}])
def test_an_impossible_id_is_never_drawn_by_the_smallest_or_largest_noise(options):
    logits = np.array([-np.inf, 0.0, -np.inf, 1.0, -np.inf], "float32")
    noise = np.array([[0.0, 1 - 2**-24]], "float32")
    ids = draw(tf.tile(tf.constant(logits)[None, None], [1, 2, 1]), noise, 1.0, **options).numpy()
    assert set(ids[0]) <= {1, 3}


def test_noise_is_uniform_and_its_numbers_are_independent():
    noise = np.stack(
        [uniform(7, tf.range(100)[:, None], tf.range(20), tf.constant(position)).numpy() for position in range(10)]
    )
    assert noise.min() >= 0 and noise.max() < 1 and len(np.unique(noise)) > 19_900
    counts = np.histogram(noise, 10, (0, 1))[0]
    assert np.abs(counts - 2000).max() < 200
    for axis in range(3):
        size = noise.shape[axis]
        a, b = np.take(noise, range(size - 1), axis), np.take(noise, range(1, size), axis)
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.03
    other = uniform(8, tf.range(100)[:, None], tf.range(20), tf.constant(0)).numpy()
    assert abs(np.corrcoef(noise[0].ravel(), other.ravel())[0, 1]) < 0.06


def table(rng, rows=1):
    """[B, N, V, V] with an end token that is rarely likely."""
    logits = rng.normal(size=[rows, 6, 7, 7]).astype("float32")
    logits[..., 1] -= 1
    return logits


def sampled(table, keys, limit=6, **options):
    zeros = tf.zeros([len(table)], tf.int32)
    options = DecodingOptions(**{"temperature": 1.0, **options})
    return search(TableDecoder(table), tf.zeros([len(table), 0], tf.int32), zeros, zeros + limit, options, keys)


def test_a_rows_samples_depend_on_seed_and_key_and_not_on_batch_mates(rng):
    logits = table(rng, 4)
    together = sampled(logits, [5, 9, 5, 70], n_best=3, seed=1)
    for row, key in enumerate([5, 9, 5, 70]):
        alone = sampled(logits[row : row + 1], [key], n_best=3, seed=1)
        width = alone.ids.shape[2]
        np.testing.assert_array_equal(alone.ids[0], together.ids[row, :, :width])
        np.testing.assert_allclose(alone.log_probability[0], together.log_probability[row], rtol=1e-5)
    same = sampled(np.repeat(logits[:1], 4, axis=0), [5, 9, 5, 70], n_best=3, seed=1).ids.numpy()
    np.testing.assert_array_equal(same[0], same[2])
    assert (same[0] != same[1]).any()
    other = sampled(logits, [5, 9, 5, 70], n_best=3, seed=2)
    assert (other.ids.numpy()[:, :, :1] != together.ids.numpy()[:, :, :1]).any()


def test_the_first_sample_is_the_same_however_many_there_are(rng):
    logits = table(rng)
    one = sampled(logits, [3], seed=4).ids.numpy()[0, 0]
    several = sampled(logits, [3], n_best=5, seed=4).ids.numpy()[0]
    assert any(np.array_equal(np.trim_zeros(one), np.trim_zeros(ids)) for ids in several)


def test_log_probabilities_are_the_models_own_best_first_and_ended_before_cut(rng):
    logits = table(rng)
    found = sampled(logits, [0], n_best=8, temperature=2.0, top_k=4)
    rows = [tuple(np.trim_zeros(ids)) for ids in found.ids.numpy()[0]]
    scores = found.log_probability.numpy()[0]
    np.testing.assert_allclose(scores, [log_probability(logits[0], ids) for ids in rows], rtol=1e-5)
    np.testing.assert_array_equal(found.score, found.log_probability)
    ended = [ids[-1] == 1 for ids in rows]
    assert ended == sorted(ended, reverse=True) and 0 < sum(ended) < 8
    for group in (True, False):
        values = [score for score, end in zip(scores, ended, strict=True) if end == group]
        assert values == sorted(values, reverse=True)


def test_padding_is_never_drawn_and_hardly_any_temperature_is_greedy_search(rng):
    logits = table(rng, 3)
    logits[..., 0] = 50.0
    zeros = tf.zeros([3], tf.int32)
    greedy = search(TableDecoder(logits), tf.zeros([3, 0], tf.int32), zeros, zeros + 6, DecodingOptions())
    found = sampled(logits, None, temperature=1e-6)
    np.testing.assert_array_equal(found.ids, greedy.ids)
