"""A decoder alone: a language model.

Legend: B batch, M length, D hidden size, V vocabulary size, T steps.
"""

import keras

from ut_keras.layers.dropout import fold_seed
from ut_keras.layers.embedding import TokenEmbedding
from ut_keras.layers.mixed import recurrent_body
from ut_keras.models.decoder import DecoderSide
from ut_keras.models.model import SequenceModel


@keras.saving.register_keras_serializable("ut_keras")
class UniversalTransformerLM(SequenceModel):
    """A decoder-only Universal Transformer: each position predicts the token that stands there from those before.

    Args:
        vocabulary_size: V; id 0 is padding.
        hidden_size: D.
        shared_embedding: the softmax uses the embedding's table.
        scale_embedding: multiply embeddings by sqrt(D).
        step_length, max_length: see `DecoderSide`.
        random_offset, ponder_weight, ponder_warmup_steps: see `SequenceModel`.
        **body: arguments of `UniversalRecurrence`: max_steps, halting, recurrence, num_heads, filter_size, ...; and of
            `MixedRecurrence`: mix, num_mixedin_layers.

    Call arguments:
        features: {"targets": [B, M] int}, or the ids. Unshifted.
        training, return_ponder, max_steps, seed: as `UniversalTransformer`.

    Returns:
        [B, M, V] float32 logits, and {"decoder": Ponder} where asked for.

    Example:

    >>> model = UniversalTransformerLM(20, hidden_size=8, num_heads=2, filter_size=16, max_steps=3)
    >>> model(keras.ops.array([[5, 6, 7, 1]])).shape.as_list()
    [1, 4, 20]

    Source: T2T universal_transformer.py (a problem without inputs).
    """

    make_body = staticmethod(recurrent_body)

    def __init__(
        self,
        vocabulary_size,
        hidden_size=512,
        shared_embedding=True,
        scale_embedding=True,
        step_length="true",
        max_length=256,
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
            "shared_embedding": shared_embedding,
            "scale_embedding": scale_embedding,
            "step_length": step_length,
            "max_length": max_length,
            **body,
        }
        policy = self.dtype_policy
        self.embedding = TokenEmbedding(vocabulary_size, hidden_size, scale_embedding, name="embedding", dtype=policy)
        self.softmax = self.embedding
        if not shared_embedding:
            self.softmax = TokenEmbedding(vocabulary_size, hidden_size, name="softmax", dtype=policy)
        decoder_body = self.make_body(name="body", dtype=policy, causal=True, **body)
        self.decoder = DecoderSide(decoder_body, hidden_size, step_length, max_length, name="decoder", dtype=policy)
        self.build()

    def encode(self, features, max_steps=None):
        """Returns {}: there is no memory."""
        return {}

    def decode(self, targets, memory=None, max_steps=None, last=False, return_ponder=False):
        """Returns logits [B, M, V] for targets [B, M] and their ponder times; see `DecoderSide.decode`."""
        return self.decoder.decode(targets, self.embedding, self.softmax, memory, max_steps, last, return_ponder)

    def start_decoding(self, memory, max_steps=None):
        """Returns the `decoding.decoder.Decoder` of a batch, with a cache; `memory` is what `encode` returned."""
        return self.decoder.start_decoding(self.embedding, self.softmax, memory, max_steps)

    def call(self, features, training=None, return_ponder=False, max_steps=None, seed=None):
        logits, ponder, _ = self.run(features, max_steps, self._begin(training, seed))
        return self._finish(logits, ponder, return_ponder)

    def run(self, features, max_steps=None, seed=None, trace=False):
        """Returns (logits, {side: Ponder}, {side: traces}); `seed` None is inference."""
        targets = features["targets"] if isinstance(features, dict) else features
        states, ponder, traces = self.decoder(
            targets,
            embedding=self.embedding,
            offset=self._offset(targets, seed),
            seed=fold_seed(seed, 2),
            max_steps=max_steps,
            trace=trace,
        )
        if trace:
            traces["states"] = states
        return self.softmax.logits(states), {"decoder": ponder}, {"decoder": traces}
