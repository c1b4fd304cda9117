"""The encoder: tokens or sentences in, refined states out.

Legend: B batch, L length, S sentences, W words of a sentence, D hidden size, V vocabulary size, T steps.
"""

import keras
import tensorflow as tf

from ut_keras.layers.choices import one_of
from ut_keras.layers.embedding import SentenceEmbedding, TokenEmbedding
from ut_keras.layers.masks import sequence_mask
from ut_keras.layers.mixed import recurrent_body
from ut_keras.layers.signals import positions_of
from ut_keras.models.decoder import STEP_LENGTHS
from ut_keras.models.model import SequenceModel, as_arrays, check_rank

_TARGET_SPACES = 32


class EncoderSide(keras.layers.Layer):
    """From ids to states: sentences, target space, positions, then the body.

    Args:
        body: the layer that refines the states, `UniversalRecurrence`, `MixedRecurrence` or `BlockStack`.
        hidden_size: D.
        words_per_sentence: W where inputs are sentences, else None.
        numbering: positions count from the "start", or back from the "end" (the last real position is 0); None: "end"
            for sentences, whose last is the question, else "start".
        step_length: start index "step" measures in the "true" or the "padded" length.
        target_space_id: row of the learned target-space table that is added to every position; None: no table.

    Call arguments:
        ids: [B, L] or [B, S, W] int.
        embedding: the `TokenEmbedding`.
        offset: [B, 1] int32, added to the positions.
        seed, max_steps, trace: as `UniversalRecurrence`.

    Returns:
        (memory, Ponder or (), traces or None); memory is {"states": [B, L, D], "mask": [B, L] bool,
        "ponder_times": [B, L] float32}.
    """

    def __init__(
        self,
        body,
        hidden_size,
        words_per_sentence=None,
        numbering=None,
        step_length="true",
        target_space_id=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.body = body
        self.words_per_sentence = words_per_sentence
        self.numbering = numbering or ("end" if words_per_sentence else "start")
        self.step_length = one_of("step_length", step_length, STEP_LENGTHS)
        self.target_space_id = target_space_id
        self.sentences = None
        if words_per_sentence:
            self.sentences = SentenceEmbedding(words_per_sentence, name="sentences", dtype=self.dtype_policy)
            self.sentences.build((None, None, words_per_sentence, hidden_size))
        self.body.build((None, None, hidden_size))
        self._spaces = None
        if target_space_id is not None:
            self._spaces = self.add_weight(
                name="target_space", shape=(_TARGET_SPACES, hidden_size), initializer="glorot_uniform"
            )
        self.built = True

    def call(self, ids, embedding, offset=0, seed=None, max_steps=None, trace=False):
        ids = check_rank(ids, self.words_per_sentence)
        mask = sequence_mask(ids)
        x = embedding(ids)
        if self.sentences is not None:
            x = self.sentences(x, mask)
        if self._spaces is not None:
            x += tf.cast(tf.convert_to_tensor(self._spaces), x.dtype)[self.target_space_id]
        lengths = tf.shape(mask)[1:] if self.step_length == "padded" else None
        positions = positions_of(mask, self.numbering) + offset
        states, ponder, *traces = self.body(
            x, mask, positions=positions, lengths=lengths, seed=seed, max_steps=max_steps, trace=trace
        )
        times = ponder.ponder_times if ponder else tf.cast(mask, tf.float32)
        memory = {"states": states, "mask": mask, "ponder_times": times}
        return memory, ponder, {**traces[0], "input": x} if trace else None


@keras.saving.register_keras_serializable("ut_keras")
class UniversalTransformerEncoder(SequenceModel):
    """An encoder alone: one block applied `max_steps` times to every position.

    Padding (id 0; for sentences an all-zero row) is never attended to, never runs and never counts.

    Args:
        vocabulary_size: V, ids 0 to V-1; 0 is padding.
        hidden_size: D.
        words_per_sentence: W if inputs are [B, S, W] sentences, the question the last real row; else None.
        head: None: states [B, L, D]; "tokens": logits [B, L, V] over the embedding's table (or a table of its own
            with `shared_embedding=False`).
        scale_embedding: multiply embeddings by sqrt(D).
        shared_embedding: the head uses the embedding's table.
        numbering, step_length, target_space_id: see `EncoderSide`.
        random_offset, ponder_weight, ponder_warmup_steps: see `SequenceModel`.
        **body: arguments of `UniversalRecurrence`: max_steps, halting, recurrence, num_heads, filter_size, norm,
            transition, signal, num_blocks, dropouts, remat; and of `MixedRecurrence`: mix, num_mixedin_layers.

    Call arguments:
        features: {"inputs": ids}, or the ids: [B, L] int, or [B, S, W] int.
        training: dropout, random offsets.
        return_ponder: also return {"encoder": Ponder}.
        max_steps: steps of this call, for elastic depth.
        seed: [2] int32, dropout seed of this call.

    Returns:
        [B, L, D] of the compute type or [B, L, V] float32, and the dictionary where asked for.

    Example:

    >>> encoder = UniversalTransformerEncoder(20, hidden_size=8, num_heads=2, filter_size=16, halting="frozen")
    >>> states, ponder = encoder(tf.constant([[5, 6, 7, 0]]), return_ponder=True)
    >>> states.shape.as_list(), float(ponder["encoder"].ponder_times[0, 3])
    ([1, 4, 8], 0.0)

    Source: paper section 2; T2T universal_transformer.py (UniversalTransformerEncoder).
    """

    make_body = staticmethod(recurrent_body)

    def __init__(
        self,
        vocabulary_size,
        hidden_size=512,
        words_per_sentence=None,
        numbering=None,
        head=None,
        scale_embedding=True,
        shared_embedding=True,
        step_length="true",
        target_space_id=None,
        random_offset=0,
        ponder_weight=0.01,
        ponder_warmup_steps=0,
        name=None,
        dtype=None,
        **body,
    ):
        body = keras.saving.serialize_keras_object(body)  # halting may be a layer: its configuration counts
        halting = body.get("halting", "none")
        super().__init__(random_offset, ponder_weight, ponder_warmup_steps, halting, name=name, dtype=dtype)
        self._arguments = {
            "vocabulary_size": vocabulary_size,
            "hidden_size": hidden_size,
            "words_per_sentence": words_per_sentence,
            "numbering": numbering,
            "head": head,
            "scale_embedding": scale_embedding,
            "shared_embedding": shared_embedding,
            "step_length": step_length,
            "target_space_id": target_space_id,
            **body,
        }
        if head not in (None, "tokens"):
            raise ValueError(f"head={head!r} is not None or 'tokens'")
        policy = self.dtype_policy
        self.head = head
        self.embedding = TokenEmbedding(vocabulary_size, hidden_size, scale_embedding, name="embedding", dtype=policy)
        self.softmax = self.embedding
        if head == "tokens" and not shared_embedding:
            self.softmax = TokenEmbedding(vocabulary_size, hidden_size, name="softmax", dtype=policy)
        self.encoder = EncoderSide(
            self.make_body(name="body", dtype=policy, **body),
            hidden_size,
            words_per_sentence,
            numbering,
            step_length,
            target_space_id,
            name="encoder",
            dtype=policy,
        )
        self.build()

    def encode(self, features, max_steps=None):
        """Returns the memory of the inputs, a dictionary of tensors with the batch leading."""
        return self.refine(features, max_steps)[0]

    def refine(self, features, max_steps=None, seed=None, trace=False):
        """Returns (memory, Ponder, traces) of `EncoderSide`; `seed` None is inference."""
        features = as_arrays(features)
        ids = features["inputs"] if isinstance(features, dict) else features
        return self.encoder(
            ids,
            embedding=self.embedding,
            offset=self._offset(ids, seed),
            seed=seed,
            max_steps=max_steps,
            trace=trace,
        )

    def call(self, features, training=None, return_ponder=False, max_steps=None, seed=None):
        outputs, ponder, _ = self.run(features, max_steps, self._begin(training, seed))
        return self._finish(outputs, ponder, return_ponder)

    def run(self, features, max_steps=None, seed=None, trace=False):
        """Returns (outputs, {"encoder": Ponder}, {"encoder": traces}); `seed` None is inference."""
        memory, ponder, traces = self.refine(features, max_steps, seed, trace)
        states = memory["states"]
        if trace:
            traces["memory"] = states
        outputs = self.softmax.logits(states) if self.head == "tokens" else states
        return outputs, {"encoder": ponder}, {"encoder": traces}
