"""Decoding with an LSTM: its cells' states are all that it knows of the ids before.

Legend: B rows, K hypotheses of a row, P prefix length, D hidden size.
"""

import tensorflow as tf

from ut_keras.decoding.decoder import PAD, Decoder


class LSTMDecoder(Decoder):
    """The decoder of `LSTMSeq2Seq`; its state is {"cells": a list of states [B, K, D], "memory": the encoder's}.

    Args:
        model: `LSTMSeq2Seq`.
        memory: what its `encode` returned.
    """

    def __init__(self, model, memory):
        self._model = model
        self._memory = memory

    def start(self, prefix, beams, capacity):
        length = tf.shape(prefix)[1]
        cells = [tf.convert_to_tensor(state) for layer in self._memory["states"] for state in layer]
        if prefix.shape[1] != 0:
            shifted = tf.pad(prefix, [[0, 0], [1, 0]])[:, :-1]

            def read(place, cells):
                return place + 1, self._read(shifted[:, place], cells)[1]

            _, cells = tf.while_loop(lambda place, _: place < length, read, (tf.constant(0), cells))
        cells = [tf.repeat(state[:, None], beams, axis=1) for state in cells]
        memory = {name: value for name, value in self._memory.items() if name != "states"}
        return {"cells": cells, "memory": memory}, tf.ones(tf.shape(prefix), tf.float32)

    def step(self, state, ids, position):
        shape = tf.shape(ids)
        flat = [tf.reshape(cell, [-1, cell.shape[-1]]) for cell in state["cells"]]
        output, flat = self._read(tf.reshape(ids, [-1]), flat)
        output = tf.reshape(output, [shape[0], ids.shape[1], output.shape[-1]])
        logits = self._model.predict_from(output, state["memory"])
        cells = [tf.reshape(cell, [shape[0], ids.shape[1], cell.shape[-1]]) for cell in flat]
        running = (ids != PAD) | (position == 0)
        return logits, tf.cast(running, tf.float32), {**state, "cells": cells}

    def _read(self, ids, cells):
        """Returns (output [N, D], states) after one id each; ids: [N], cells: a list of [N, D]."""
        x, after = self._model.target_embedding(ids[:, None])[:, 0], []
        for index, layer in enumerate(self._model.decoder):
            x, state = layer.cell(x, cells[2 * index : 2 * index + 2])
            after += state
        return x, after

    def reorder(self, state, parents):
        return {**state, "cells": [tf.gather(cell, parents, batch_dims=1) for cell in state["cells"]]}

    def select(self, state, rows):
        return tf.nest.map_structure(lambda kept: tf.gather(kept, rows), state)

    def grow(self, state, capacity):
        return state

    def invariants(self, state):
        return tf.nest.map_structure(lambda kept: tf.TensorShape([None, *kept.shape[1:]]), state)
