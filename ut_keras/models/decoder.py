"""The decoder: targets shifted right, a causal body, and the memory of the encoder.

Legend: B batch, L source length, M target length, D hidden size.
"""

import keras
import tensorflow as tf

from ut_keras.errors import UserError
from ut_keras.layers.choices import one_of
from ut_keras.models.model import check_rank

STEP_LENGTHS = ("true", "padded")


class DecoderSide(keras.layers.Layer):
    """From target ids to states, each of which predicts the target at its own position.

    Args:
        body: the causal layer that refines the states, `UniversalRecurrence`, `MixedRecurrence` or `BlockStack`.
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
        lengths = tf.shape(targets)[1:] if self.step_length == "padded" else lengths_of(self, memory)
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

    def decode(self, targets, embedding, softmax, memory=None, max_steps=None, last=False, return_ponder=False):
        """Returns logits [B, M, V] for targets [B, M], or with `last` [B, 1, V], those of the last position.

        The id at a position that is to be predicted is not read. With `return_ponder` also the ponder times [B, M]
        (with `last` [B, 1]) float32. `softmax` is the `TokenEmbedding` that gives logits.
        """
        states, ponder, _ = self(targets, embedding=embedding, memory=memory, max_steps=max_steps)
        times = ponder.ponder_times if ponder else tf.cast(tf.not_equal(targets, 0), tf.float32)
        if last:
            states, times = states[:, -1:], times[:, -1:]
        logits = softmax.logits(states)
        return (logits, times) if return_ponder else logits

    def start_decoding(self, embedding, softmax, memory=None, max_steps=None):
        """Returns the `decoding.decoder.Decoder` with a cache; `softmax` is the `TokenEmbedding` that gives logits.

        Raises:
            UserError: what a position computes depends on later ones, so that there is nothing to keep.
        """
        from ut_keras.decoding.cached import CachedDecoder

        halting, timing = self.body.halting, self.body.timing
        if halting is not None and halting.form == "global" and halting.global_over == "all":
            raise UserError(_NOT_CAUSAL.format("halting 'global' over all positions", "global_over=prefix"))
        if timing.shift_by_step and self.step_length == "padded":
            reason = "start index 'step' in the padded length"
            raise UserError(_NOT_CAUSAL.format(reason, "position_step_length=true"))
        return CachedDecoder(self, embedding, softmax, memory, max_steps)


def lengths_of(side, memory):
    """Returns the lengths [B] (or [1]) int32 that start index "step" measures in when it is the "true" one."""
    if not memory:
        return tf.constant([side.max_length])
    return tf.reduce_sum(tf.cast(memory["mask"], tf.int32), axis=1)


_NOT_CAUSAL = (
    "{0} lets a position read later ones, which are not there yet in decoding: train with {1}, or decode with "
    "cached=False, which computes everything again for each id as tensor2tensor does"
)
