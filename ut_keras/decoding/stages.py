"""The loop of a search, in stages: rows that have ended cost nothing, and no room is held that is not needed.

Legend: B rows of the batch, b rows of a stage, K hypotheses of a row, P prefix length, N capacity.
"""

import typing

import tensorflow as tf

from ut_keras.decoding import history as histories
from ut_keras.decoding.decoder import EOS, PAD
from ut_keras.decoding.hypotheses import NONE, Alive, Finished, Rows, first_alive, nothing_finished

# Positions of the first stage; each later one has twice as many.
FIRST_CAPACITY = 32


class Search(typing.NamedTuple):
    """Where the search of each row stands.

    Attributes:
        alive, finished: `Alive` and `Finished`.
        lengths: [B] int32, ids of each alive hypothesis, prefix included.
        running: [B] bool, whether the row goes on.
    """

    alive: Alive
    finished: Finished
    lengths: tf.Tensor
    running: tf.Tensor


def run(decoder, step, prefix, rows, stages=True, longest=None):
    """Searches until every row has stopped.

    A stage is a loop of static shapes that writes in place. It ends when its capacity is full, or when so many of its
    rows have stopped that going on with the others alone pays. A row whose limit leaves no room behind its prefix, or
    whose prefix ends with an end token, never runs. What all rows that run are given is read at once, by
    `decoder.start`; the rest of longer prefixes id by id.

    Args:
        decoder: a `Decoder`.
        step: `Greedy`, `Sampling` or `Beam`: an object with `beams` (K), `all_alive` (whether all hypotheses are alive
            at the beginning), `reorders` (whether hypotheses change places), and itself a function
            (logits [b, K, V], Alive, Finished, position, Rows, running [b]) -> (Alive, Finished, stopped [b] bool).
        prefix: [B, P] int32, 0 behind each row's.
        rows: `Rows` of the batch.
        stages: Python bool; False: one stage of full capacity and of all rows, for XLA.
        longest: Python int, no limit is larger; None: the largest limit. XLA has to know it.

    Returns:
        (`Search`, `History` of the positions up to the last one that was searched).
    """
    batch = tf.shape(prefix)[0]
    state = _begin(step, prefix, rows)
    most = tf.reduce_max(tf.concat([tf.where(state.running, rows.limits, 1), [1]], axis=0))
    shared, capacity = prefix[:, :0], most if longest is None else max(longest, 1)
    if stages:
        shared = _shared(prefix, rows, state.running)
        # Not cut to what is needed: oneDNN compiles code for every shape that it meets and keeps it.
        capacity = (tf.shape(shared)[1] // FIRST_CAPACITY + 1) * FIRST_CAPACITY
        last = tf.pad(shared, [[0, 0], [1, 0]])[:, -1:]
        state = state._replace(alive=state.alive._replace(ids=tf.broadcast_to(last, [batch, step.beams])))
    decoder_state, times = decoder.start(shared, step.beams, capacity)
    loop = _Loop(decoder, step, prefix, rows, stages)
    history = histories.begin(times, step.beams, capacity)
    position = tf.shape(shared)[1] if stages else tf.constant(0)
    if not stages:
        *_, state, _, history = loop.stage(position, capacity, tf.range(batch), state, decoder_state, history)
        return state, history

    def body(position, capacity, indices, state, decoder_state, history):
        indices, decoder_state = _compacted(decoder, state, indices, decoder_state)
        wanted = tf.where(position < capacity, capacity, 2 * capacity)
        decoder_state, history = tf.cond(
            wanted > capacity,
            lambda: (decoder.grow(decoder_state, wanted), histories.resize(history, wanted)),
            lambda: (decoder_state, history),
        )
        position, state, decoder_state, history = loop.stage(position, wanted, indices, state, decoder_state, history)
        return position, wanted, indices, state, decoder_state, history

    first = position, capacity, tf.range(batch), state, decoder_state, history
    shapes = (*_shapes(first[:4]), decoder.invariants(decoder_state), _shapes(history))
    *_, state, _, history = tf.while_loop(
        lambda position, capacity, indices, state, *_: tf.reduce_any(state.running), body, first, shapes
    )
    return state, history


class _Loop:
    """The inner loop, over the positions of one stage."""

    def __init__(self, decoder, step, prefix, rows, stages):
        self.decoder = decoder
        self.step = step
        # Never empty, where it is not known to be: there is something to look up at each position.
        self.prefix = prefix if prefix.shape[1] == 0 else tf.pad(prefix, [[0, 0], [0, 1]])
        self.rows = rows
        self.stages = stages

    def stage(self, position, capacity, indices, whole, decoder_state, history):
        """Searches the rows `indices` [b] of the batch until the stage ends; returns all but `capacity` and them."""
        rows = Rows(*(tf.gather(value, indices) for value in self.rows))
        prefix = tf.gather(self.prefix, indices)
        size = tf.shape(indices)[0]

        def goes_on(position, state, decoder_state, history):
            count = tf.reduce_sum(tf.cast(state.running, tf.int32))
            enough = 4 * count >= 3 * size if self.stages else True
            return (position < capacity) & (count > 0) & enough

        def body(position, state, decoder_state, history):
            # What has ended, and a beam's empty place, shall cost no step.
            goes = state.running[:, tf.newaxis] & (state.alive.log_probability > NONE)
            ids = tf.where(goes, state.alive.ids, PAD)
            logits, times, decoder_state = self.decoder.step(decoder_state, ids, position)
            state = self._advance(logits, state, position, rows, prefix)
            if self.step.reorders:
                decoder_state = self.decoder.reorder(decoder_state, state.alive.parents)
            history = histories.write(history, position, indices, state.alive, times)
            return position + 1, state, decoder_state, history

        state = tf.nest.map_structure(lambda value: tf.gather(value, indices), whole)
        first = position, state, decoder_state, history
        shapes = None
        if self.stages:
            shapes = (*_shapes(first[:2]), self.decoder.invariants(decoder_state), _shapes(history))
        position, state, decoder_state, history = tf.while_loop(goes_on, body, first, shapes)
        whole = tf.nest.map_structure(
            lambda old, new: tf.tensor_scatter_nd_update(old, indices[:, tf.newaxis], new), whole, state
        )
        return position, whole, decoder_state, history

    def _advance(self, logits, state, position, rows, prefix):
        """Returns the `Search` of a stage's rows after one position."""
        alive, finished, stopped = self.step(logits, state.alive, state.finished, position, rows, state.running)
        chooses = state.running
        if prefix.shape[1] != 0:
            forced = state.running & (position < rows.lengths)
            chooses &= ~forced
            given = tf.gather(prefix, tf.minimum(position, tf.shape(prefix)[1] - 1), axis=1)
        new = _where(chooses, (alive, finished), (state.alive, state.finished))
        if prefix.shape[1] != 0:
            ids = tf.where(forced[:, tf.newaxis], given[:, tf.newaxis], new[0].ids)
            new = new[0]._replace(ids=ids), new[1]
        lengths = tf.where(state.running, position + 1, state.lengths)
        running = state.running & (position + 1 < rows.limits) & ~(chooses & stopped)
        return Search(*new, lengths, running)


def _begin(step, prefix, rows):
    """Returns the `Search` of rows of which nothing was read yet."""
    batch = tf.shape(prefix)[0]
    last = tf.gather(tf.pad(prefix, [[0, 0], [1, 0]]), rows.lengths, batch_dims=1)
    running = (rows.limits > rows.lengths) & (last != EOS)
    alive = first_alive(batch, step.beams, step.all_alive)
    # A row that never runs has one hypothesis, its prefix.
    exists = running[:, tf.newaxis] | (tf.range(step.beams) == 0)
    alive = alive._replace(log_probability=tf.where(exists, alive.log_probability, NONE))
    return Search(alive, nothing_finished(batch, step.beams), rows.lengths, running)


def _shared(prefix, rows, running):
    """Returns what all rows that run are given, [B, P] int32; rows that do not run hold any ids."""
    width = tf.shape(prefix)[1]
    shortest = tf.reduce_min(tf.concat([tf.where(running, rows.lengths, width), [width]], axis=0))
    shared = prefix[:, : tf.where(tf.reduce_any(running), shortest, 0)]
    return tf.where(shared == PAD, EOS, shared)


def _compacted(decoder, state, indices, decoder_state):
    """Returns the rows of the batch that still run, of the rows `indices`, and the decoder's state of these."""
    running = tf.gather(state.running, indices)
    kept = tf.cast(tf.where(running)[:, 0], tf.int32)
    decoder_state = tf.cond(
        tf.size(kept) < tf.size(indices), lambda: decoder.select(decoder_state, kept), lambda: decoder_state
    )
    return tf.gather(indices, kept), decoder_state


def _where(rows, new, old):
    """Returns a nest of [b, K] tensors, the new ones in rows [b] bool."""
    return tf.nest.map_structure(lambda a, b: tf.where(rows[:, tf.newaxis], a, b), new, old)


def _shapes(values):
    """Returns a nest of shapes for loops: of two axes and more the last one is static (K), all others may change."""

    def shape(value):
        axes = len(value.shape)
        return tf.TensorShape([None] * (axes - 1) + [value.shape[-1]] if axes > 1 else [None] * axes)

    return tf.nest.map_structure(shape, values)
