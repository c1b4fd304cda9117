"""Decoding with a cache: each id costs one position, whatever came before.

Legend: B rows, K hypotheses of a row, P prefix length, N capacity, L source length, D hidden size, H heads, E head
size, V vocabulary size.
"""

import tensorflow as tf

from ut_keras.decoding.decoder import PAD, Decoder
from ut_keras.layers.cache import invariants, places_of, reorder, select_rows, widen
from ut_keras.models.decoder import lengths_of


class CachedDecoder(Decoder):
    """The decoder of the Transformer models: keys and values of every step are computed once per position.

    A row's hypotheses share its memory. They also share the cache's positions: which of the K slots of an earlier
    position belong to a hypothesis stands in `ancestry`, so that a reordering of the beam moves no keys and values.

    Args:
        side: `DecoderSide`.
        embedding: `TokenEmbedding` of the targets.
        softmax: the `TokenEmbedding` that gives logits.
        memory: {"states": [B, L, D], "mask": [B, L] bool}; {} for a language model.
        max_steps: recurrent steps at most; None: the model's own.

    The state that search carries: {"cache": see `layers.cache`, "rows": what belongs to each row of the memory,
    "ancestry": [B, K, N] int32 with more than one hypothesis}.
    """

    def __init__(self, side, embedding, softmax, memory, max_steps=None):
        self._body = side.body
        self._embedding = embedding
        self._softmax = softmax
        self._steps = self._body.depth(max_steps)
        self._layout = self._body.cache_layout(self._steps)
        self._lengths = lengths_of(side, memory)
        states, mask = (memory["states"], memory["mask"]) if memory else (None, None)
        self._context = self._body.prepare_decoding(states, mask, self._steps)
        self._reads_memory = bool(memory)

    def start(self, prefix, beams, capacity):
        batch, length = tf.unstack(tf.shape(prefix))
        rows = {}
        if self._reads_memory:
            rows = {
                "lengths": self._lengths,
                "memory": [
                    (part["encdec"].keys, part["encdec"].values, part["encdec"].bias)
                    for part in self._context["blocks"]
                ],
            }
        tensors = self._body.empty_cache(batch, length, self._steps)
        times = tf.zeros([batch, length], tf.float32)
        if prefix.shape[1] != 0:
            shifted = tf.pad(prefix, [[0, 0], [1, 0]])[:, :-1]
            places = places_of(tf.constant(0), length, batch, tensors, self._layout, 1)
            _, times, tensors = self._advance(rows, tensors, shifted, prefix != PAD, places)
        state = {"cache": widen(tensors, beams, capacity, self._layout), "rows": rows}
        if beams > 1:
            # The prefix is in the first slots.
            state["ancestry"] = tf.zeros([batch, beams, capacity], tf.int32)
        return state, times

    def step(self, state, ids, position):
        places = places_of(
            position, 1, tf.shape(ids)[0], state["cache"], self._layout, ids.shape[1], state.get("ancestry")
        )
        running = (ids != PAD) | (position == 0)
        output, times, tensors = self._advance(state["rows"], state["cache"], ids, running, places)
        state = {**state, "cache": tensors}
        if "ancestry" in state:
            state["ancestry"] = places.ancestry
        return self._softmax.logits(output), times, state

    def _advance(self, rows, tensors, ids, running, places):
        context, lengths = self._context, self._lengths
        if self._reads_memory:
            lengths = rows["lengths"]
            blocks = [
                {**part, "encdec": part["encdec"]._replace(keys=keys, values=values, bias=bias)}
                for part, (keys, values, bias) in zip(context["blocks"], rows["memory"], strict=True)
            ]
            context = {**context, "blocks": blocks}
        context = self._body.at(context, places, lengths)
        return self._body.advance(self._embedding(ids), running, context, tensors, places, self._steps)

    def reorder(self, state, parents):
        ancestry = tf.gather(state["ancestry"], parents, batch_dims=1)
        ancestry = tf.ensure_shape(ancestry, state["ancestry"].shape)
        return {**state, "cache": reorder(state["cache"], parents), "ancestry": ancestry}

    def select(self, state, rows):
        taken = {"cache": select_rows(state["cache"], rows, self._layout)}
        for name in ("rows", "ancestry"):
            if name in state:
                taken[name] = tf.nest.map_structure(lambda kept: tf.gather(kept, rows), state[name])
        return taken

    def grow(self, state, capacity):
        hypotheses = state["cache"]["keys"].shape[2] // self._layout.size
        grown = {**state, "cache": widen(state["cache"], hypotheses, capacity, self._layout)}
        if "ancestry" in state:
            more = capacity - tf.shape(state["ancestry"])[2]
            grown["ancestry"] = tf.pad(state["ancestry"], [[0, 0], [0, 0], [0, more]])
        return grown

    def invariants(self, state):
        def any_rows(tensor):
            return tf.TensorShape([None, *tensor.shape[1:]])

        shapes = {"cache": invariants(state["cache"]), "rows": tf.nest.map_structure(any_rows, state["rows"])}
        if "ancestry" in state:
            shapes["ancestry"] = tf.TensorShape([None, state["ancestry"].shape[1], None])
        return shapes
