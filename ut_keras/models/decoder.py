"""The decoder: targets shifted right, a causal body, and the memory of the encoder.

Legend: B batch, L source length, M target length, D hidden size.
"""

import keras
import tensorflow as tf

from ut_keras.layers.choices import one_of
from ut_keras.models.model import check_rank

STEP_LENGTHS = ("true", "padded")


class DecoderSide(keras.layers.Layer):
    """From target ids to states, each of which predicts the target at its own position.

    Args:
        body: the causal layer that refines the states, `UniversalRecurrence` or `BlockStack`.
        hidden_size: D.
        step_length: start index "step" measures in the "true" length (the source's; without a source
            `max_length`, or else it would not be causal) or in the "padded" length of the targets (T2T).
        max_length: see `step_length`.

    Call arguments:
        targets: [B, M] int, unshifted: position i sees the targets before i. Id 0 is padding and never runs; a
            position whose target is to be predicted holds any other id.
        embedding: the `TokenEmbedding`.
        memory: what `EncoderSide` returned; None or {} where there is none.
        offset: [B, 1] int32, added to the positions.
        seed, max_steps, trace: as `UniversalRecurrence`.

    Returns:
        ([B, M, D] states, Ponder or (), traces or None).
    """

    def __init__(self, body, hidden_size, step_length="true", max_length=256, **kwargs):
        super().__init__(**kwargs)
        self.body = body
        self.step_length = one_of("step_length", step_length, STEP_LENGTHS)
        self.max_length = max_length
        self.body.build((None, None, hidden_size))
        self.built = True

    def call(self, targets, embedding, memory=None, offset=0, seed=None, max_steps=None, trace=False):
        targets = check_rank(targets, None)
        mask = tf.not_equal(targets, 0)
        x = tf.pad(embedding(targets), [[0, 0], [1, 0], [0, 0]])[:, :-1]
        if self.step_length == "padded":
            lengths = tf.shape(targets)[1:]
        elif not memory:
            lengths = tf.constant([self.max_length])
        else:
            lengths = tf.reduce_sum(tf.cast(memory["mask"], tf.int32), axis=1)
        positions = tf.range(tf.shape(targets)[1])[None, :] + offset
        states, ponder, *traces = self.body(
            x,
            mask,
            positions=positions,
            lengths=lengths,
            memory=memory["states"] if memory else None,
            memory_mask=memory["mask"] if memory else None,
            seed=seed,
            max_steps=max_steps,
            trace=trace,
        )
        return states, ponder, {**traces[0], "input": x} if trace else None
