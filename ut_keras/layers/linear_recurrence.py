"""A linear recurrence over positions, c_t = f_t c_(t-1) + b_t, with its gradient written out.

Legend: B batch, L length, D channels, G group of positions, N groups.
"""

import tensorflow as tf

from ut_keras.layers.custom_gradient import custom_gradient

_GROUP = 16


def linear_recurrence(factors, terms, initial=None):
    """Returns all states c_0 ... c_(L-1) of c_t = factors_t c_(t-1) + terms_t.

    The gradient is the same recurrence from behind, so that nothing but factors and states is kept for it, and no
    loop has to be taken back.

    Args:
        factors, terms: [B, L, D] float32.
        initial: [B, D] float32, the state before the first position; None: 0.

    Returns:
        [B, L, D] float32.
    """
    if initial is not None:
        if factors.shape[1] == 1:
            return factors * initial[:, None] + terms
        factors, terms = tf.pad(factors, [[0, 0], [1, 0], [0, 0]]), tf.concat([initial[:, None], terms], axis=1)
        return linear_recurrence(factors, terms)[:, 1:]

    @custom_gradient
    def run(factors, terms):
        states = _scan(factors, terms)

        def gradient(upstream):
            reach = _scan(_shifted(factors, -1), upstream, reverse=True)
            return reach * _shifted(states, 1), reach

        return states, gradient

    return run(factors, terms)


def _scan(factors, terms, reverse=False):
    """One position after the other inside groups of 16, all groups at once; then from group to group.

    With gradients that takes a tenth (400 positions) to two thirds (64, but wide) of tf.scan's time on CPUs; forward
    alone it is slower below some 60 positions: tests/benchmarks/sru_speed.py.
    """
    if factors.shape[1] == 1:
        return terms
    batch, length = tf.unstack(tf.shape(factors)[:2])
    short = -length % _GROUP
    padding = [[0, 0], [short, 0] if reverse else [0, short], [0, 0]]

    def grouped(x):
        """[B, L, D] -> G tensors [B, N, D], in the order in which they are passed."""
        parts = tf.unstack(tf.reshape(tf.pad(x, padding), [batch, -1, _GROUP, x.shape[-1]]), axis=2)
        return parts[::-1] if reverse else parts

    factors, terms = grouped(factors), grouped(terms)
    for index in range(1, _GROUP):
        terms[index] += factors[index] * terms[index - 1]
        factors[index] *= factors[index - 1]
    before = _shifted(_double(factors[-1], terms[-1], reverse), -1 if reverse else 1)
    states = [term + factor * before for factor, term in zip(factors, terms, strict=True)]
    states = tf.stack(states[::-1] if reverse else states, axis=2)
    states = tf.reshape(states, [batch, length + short, states.shape[-1]])
    return states[:, short:] if reverse else states[:, :length]


def _double(factors, terms, reverse):
    """The same for [B, N, D] in log2 N rounds: what is known over r positions gives what is known over 2 r."""
    length = tf.shape(factors)[1]
    places = tf.range(length)[::-1] if reverse else tf.range(length)

    def double(reach, factors, terms):
        shift = -reach if reverse else reach
        inside = (places >= reach)[:, None]
        terms += tf.where(inside, factors * tf.roll(terms, shift, axis=1), 0.0)
        return 2 * reach, factors * tf.where(inside, tf.roll(factors, shift, axis=1), 0.0), terms

    return tf.while_loop(lambda reach, *_: reach < length, double, (tf.constant(1), factors, terms))[2]


def _shifted(x, by):
    """Returns x [B, L, D] one position later (`by` 1) or earlier (-1), with zeros where there is none."""
    return tf.pad(x[:, :-1], [[0, 0], [1, 0], [0, 0]]) if by == 1 else tf.pad(x[:, 1:], [[0, 0], [0, 1], [0, 0]])
