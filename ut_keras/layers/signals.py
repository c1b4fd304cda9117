"""Position and step signals as pure functions.

Legend: B batch, L length, C channels, T steps. All are computed in float32; the caller casts.
"""

import math

import tensorflow as tf

from ut_keras.layers.choices import one_of

LAYOUTS = ("paper", "t2t")
NUMBERINGS = ("start", "end")


def sinusoids(positions, channels, layout):
    """Returns the sinusoids of `positions`.

    Args:
        positions: int or float tensor of any shape [...], 0 for the first position. Layout "paper"
            counts from 1 and adds that 1 itself.
        channels: C, Python int.
        layout: "paper": sine and cosine interleaved, frequencies 10000^(-2j/C) (the paper's eq. 6-7);
            "t2t": all sines, then all cosines, C//2 frequencies geometric from 1 to 1/10000, an odd
            last channel 0 (T2T layers/common_attention.py).

    Returns:
        [..., C] float32.
    """
    positions = tf.cast(positions, tf.float32)[..., None]
    count = channels // 2
    if layout == "paper":
        frequencies = [10000.0 ** (-2.0 * j / channels) for j in range((channels + 1) // 2)]
        angles = (positions + 1.0) * tf.constant(frequencies, tf.float32)
        pairs = tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1)
        flat = tf.reshape(pairs, tf.concat([tf.shape(angles)[:-1], [2 * len(frequencies)]], 0))
        return flat[..., :channels]
    step = math.log(10000.0) / max(count - 1, 1)
    frequencies = [math.exp(-step * j) for j in range(count)]
    angles = positions * tf.constant(frequencies, tf.float32, shape=[count])
    parts = [tf.sin(angles), tf.cos(angles)]
    if channels % 2:
        parts.append(tf.zeros_like(positions))
    return tf.concat(parts, axis=-1)


def positions_of(padding_mask, numbering="start"):
    """Numbers the positions of a batch from 0.

    Args:
        padding_mask: [B, L] bool, True at real positions, which come first in each row.
        numbering: "start": 0, 1, 2, ... from the first position; "end": the last real position is 0,
            the one before it 1, ...

    Returns:
        [1, L] ("start") or [B, L] ("end") int32. Padding after the end gets 0 under "end".
    """
    one_of("numbering", numbering, NUMBERINGS)
    indices = tf.range(tf.shape(padding_mask)[1])[None, :]
    if numbering == "start":
        return indices
    lengths = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1, keepdims=True)
    return tf.maximum(lengths - 1 - indices, 0)


def step_shift(lengths, step, steps):
    """Returns how far start index "step" moves the positions at a step: floor(length * step / steps).

    Args:
        lengths: [B] int32 (or [1]), the length that the shift is measured in.
        step: scalar int32, from 0.
        steps: number of steps T.

    Returns:
        [B, 1] int32.
    """
    return (lengths * step // steps)[:, None]
