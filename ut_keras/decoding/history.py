"""The ids of all hypotheses of a search, as links from each position to the one before.

Nothing that was written is moved when hypotheses change places: at each position stand the ids of the K hypotheses
and which of the hypotheses before they continue; a hypothesis is read from its end.

Legend: B rows of the whole batch, b rows that are written, K hypotheses of a row, n hypotheses that are read, N
capacity.
"""

import typing

import tensorflow as tf


class History(typing.NamedTuple):
    """What was chosen at each position.

    Attributes:
        choices: [N, B, K] int32, id * K + parent of each hypothesis at the position.
        ponder_times: [N, B, K] float32, of the hypotheses before the choice.
    """

    choices: tf.Tensor
    ponder_times: tf.Tensor


def begin(ponder_times, beams, capacity):
    """Returns the history of rows that begin with P given ids, whose ponder times are [B, P]."""
    size = tf.shape(ponder_times)
    times = tf.tile(tf.transpose(ponder_times)[..., tf.newaxis], [1, 1, beams])
    choices = tf.zeros([capacity, size[0], beams], tf.int32)
    return History(choices, tf.pad(times, [[0, capacity - size[1]], [0, 0], [0, 0]]))


def write(history, position, rows, alive, ponder_times):
    """Returns the history with `Alive` [b, K] and ponder times [b, K] of the rows [b] at a position, in place."""
    cells = tf.stack([tf.fill(tf.shape(rows), position), rows], axis=1)
    choices = alive.ids * alive.ids.shape[1] + alive.parents
    return History(
        tf.tensor_scatter_nd_update(history.choices, cells, choices),
        tf.tensor_scatter_nd_update(history.ponder_times, cells, ponder_times),
    )


def resize(history, capacity):
    """Returns the history cut or padded to a capacity."""
    kept = [part[:capacity] for part in history]
    more = [[0, capacity - tf.shape(kept[0])[0]], [0, 0], [0, 0]]
    return History(*(tf.ensure_shape(tf.pad(part, more), [None, *part.shape[1:]]) for part in kept))


def read(history, lengths, last, parents, reorders):
    """Returns the ids and ponder times of hypotheses, from their last id backwards.

    Args:
        history: `History` of capacity N.
        lengths: [B, n] int32, at most N; 0 gives nothing.
        last: [B, n] int32, the last id of each.
        parents: [B, n] int32, the hypothesis of the last position that it continues.
        reorders: Python bool; False: every hypothesis has kept its place.

    Returns:
        (ids [B, n, N] int32, ponder times [B, n, N] float32), both 0 from lengths[b, n] on.
    """
    beams = history.choices.shape[2]
    positions = tf.range(tf.shape(history.choices)[0])
    if reorders:
        before = _walk(history.choices % beams, lengths, parents)
    else:
        before = tf.tile(parents[tf.newaxis], [tf.size(positions), 1, 1])
    # What stands at a position is the hypothesis that the next position continues.
    after = tf.pad(before[1:], [[0, tf.minimum(1, tf.size(positions))], [0, 0], [0, 0]])
    places = positions[:, tf.newaxis, tf.newaxis]
    ids = tf.where(places == lengths - 1, last, tf.gather(history.choices // beams, after, batch_dims=2))
    times = tf.gather(history.ponder_times, before, batch_dims=2)
    real = places < lengths
    return _by_row(tf.where(real, ids, 0)), _by_row(tf.where(real, times, 0.0))


def _by_row(values):
    """Returns values [N, B, n] as [B, n, N]. Of int32 tf.transpose is one that oneDNN complains about on many CPUs."""
    size = tf.shape(values)
    stride = size[1] * size[2]
    places = tf.range(stride)[:, tf.newaxis] + stride * tf.range(size[0])
    rows = tf.gather(tf.reshape(values, [-1]), places)
    return tf.ensure_shape(tf.reshape(rows, [size[1], size[2], size[0]]), [values.shape[1], values.shape[2], None])


def _walk(parents, lengths, last_parents):
    """Returns which hypothesis each one continues at each position: [N, B, n] int32, from parents [N, B, K]."""
    size = tf.shape(parents)[0]

    def step(position, place, path):
        before = tf.gather(parents[position], place, batch_dims=1)
        place = tf.where(position < lengths - 1, before, last_parents)
        return position - 1, place, tf.tensor_scatter_nd_update(path, [[position]], place[tf.newaxis])

    path = tf.zeros([size, *tf.unstack(tf.shape(lengths))], tf.int32)
    path = tf.ensure_shape(path, [parents.shape[0], *lengths.shape])
    first = size - 1, tf.zeros_like(lengths), path
    return tf.while_loop(lambda position, *_: position >= 0, step, first)[2]
