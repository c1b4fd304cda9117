"""The length penalty of beam search."""

import tensorflow as tf


def length_penalty(length, alpha):
    """Returns ((5 + length) / 6)^alpha, by which a log-probability is divided; 1 everywhere for alpha 0.

    Args:
        length: int tensor of any shape, produced ids of a hypothesis, the end token included and a prefix not.
        alpha: Python float, at least 0. The penalty then grows with the length, so that log-probability / penalty of
            a long hypothesis is nearer to 0 (better) than that of a short one with the same log-probability.

    Source: Wu et al. 2016 (arXiv 1609.08144), eq. 14; T2T beam_search.py.
    """
    if not alpha:
        return tf.ones(tf.shape(length), tf.float32)
    return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)
