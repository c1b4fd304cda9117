"""A decoder without a cache: the whole prefix again for each id, as tensor2tensor's Universal Transformer does it.

Legend: B rows, K hypotheses of a row, P prefix length, M targets so far, N capacity, V vocabulary size.
"""

import inspect

import tensorflow as tf

from ut_keras.decoding.decoder import EOS, Decoder


class RecomputedDecoder(Decoder):
    """The decoder of any model that has `decode`; the measure of the cached one, and what a model with no cache uses.

    The memory is repeated for each hypothesis, as `decode` knows of rows alone.

    Args:
        model: has `decode(targets [B, M], memory, max_steps, last) -> logits [B, M, V]`, where position i predicts
            targets[i] from targets[<i]; with `last` [B, 1, V], the last position's. Where it has an argument
            `return_ponder` it is asked for (logits, ponder times [B, M]; with `last` [B, 1]); else each position is
            said to have taken one step.
        memory: what `model.encode` returned: a nest of tensors with the rows leading, or None.
        max_steps: recurrent steps at most; None: the model's own.
    """

    def __init__(self, model, memory, max_steps=None):
        self.model = model
        self.memory = memory
        self.max_steps = max_steps
        self._ponders = "return_ponder" in inspect.signature(model.decode).parameters

    def start(self, prefix, beams, capacity):
        size = tf.shape(prefix)
        ids = tf.pad(prefix[:, None], [[0, 0], [0, 0], [0, capacity - size[1]]])
        leaves = [] if self.memory is None else tf.nest.flatten(self.memory)
        state = {
            "ids": tf.repeat(ids, beams, axis=1) if beams > 1 else ids,
            "memory": [tf.repeat(leaf, beams, axis=0) if beams > 1 else leaf for leaf in leaves],
        }
        times = tf.ones(size, tf.float32)
        if self._ponders and prefix.shape[1] != 0:
            times = tf.cond(size[1] > 0, lambda: self._decode(prefix, leaves, last=False)[1], lambda: times)
        return state, times

    def step(self, state, ids, position):
        size = tf.shape(ids)
        written = tf.concat([state["ids"][:, :, : position - 1], ids[:, :, None]], axis=2)[:, :, :position]
        kept = tf.concat([written, state["ids"][:, :, position:]], axis=2)
        kept = tf.ensure_shape(kept, state["ids"].shape)
        # The id at the position to predict is not read; it must not be padding, which models leave out.
        targets = tf.pad(written, [[0, 0], [0, 0], [0, 1]], constant_values=EOS)
        targets = tf.reshape(targets, [size[0] * size[1], position + 1])
        logits, times = self._decode(targets, state["memory"], last=True)
        classes = logits.shape[-1] or tf.shape(logits)[-1]
        logits = tf.reshape(tf.cast(logits[:, -1], tf.float32), [size[0], ids.shape[1], classes])
        return logits, tf.reshape(times[:, -1], size), {**state, "ids": kept}

    def _decode(self, targets, leaves, last):
        memory = None if self.memory is None else tf.nest.pack_sequence_as(self.memory, leaves)
        if self._ponders:
            return self.model.decode(targets, memory, max_steps=self.max_steps, last=last, return_ponder=True)
        logits = self.model.decode(targets, memory, max_steps=self.max_steps, last=last)
        return logits, tf.ones([tf.shape(targets)[0], 1], tf.float32)

    def reorder(self, state, parents):
        beams = parents.shape[1]
        rows = tf.range(tf.shape(parents)[0])[:, None] * beams + parents
        # The memories of a row's hypotheses are equal.
        flat = tf.reshape(state["ids"], [-1, tf.shape(state["ids"])[2]])
        ids = tf.reshape(tf.gather(flat, tf.reshape(rows, [-1])), tf.shape(state["ids"]))
        return {**state, "ids": tf.ensure_shape(ids, state["ids"].shape)}

    def select(self, state, rows):
        beams = state["ids"].shape[1]
        flat = tf.reshape(rows[:, None] * beams + tf.range(beams), [-1])
        return {"ids": tf.gather(state["ids"], rows), "memory": [tf.gather(leaf, flat) for leaf in state["memory"]]}

    def grow(self, state, capacity):
        more = capacity - tf.shape(state["ids"])[2]
        return {**state, "ids": tf.pad(state["ids"], [[0, 0], [0, 0], [0, more]])}

    def invariants(self, state):
        return {
            "ids": tf.TensorShape([None, state["ids"].shape[1], None]),
            "memory": [tf.TensorShape([None, *leaf.shape[1:]]) for leaf in state["memory"]],
        }
