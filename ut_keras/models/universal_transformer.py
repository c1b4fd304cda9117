"""Encoder and decoder, a recurrence on each side.

Legend: B batch, L source length, M target length, D hidden size, V vocabulary size, T steps.
"""

import keras

from ut_keras.layers.dropout import fold_seed
from ut_keras.layers.embedding import TokenEmbedding
from ut_keras.layers.mixed import recurrent_body
from ut_keras.models.decoder import DecoderSide
from ut_keras.models.encoder import EncoderSide
from ut_keras.models.model import SequenceModel


@keras.saving.register_keras_serializable("ut_keras")
class UniversalTransformer(SequenceModel):
    """The Universal Transformer: encoder and decoder each apply one block `max_steps` times.

    Id 0 is padding, 1 ends a sequence. Padding is never attended to, never runs and never counts. Targets come
    unshifted; the decoder shifts them right itself.

    Args:
        vocabulary_size: V of the inputs.
        target_vocabulary_size: V of the targets; None: the inputs' ids serve both sides.
        hidden_size: D.
        shared_embedding: one table for inputs, targets and softmax (needs equal vocabularies); else three.
        scale_embedding, numbering, step_length, target_space_id, words_per_sentence: see `UniversalTransformerEncoder`.
        random_offset, ponder_weight, ponder_warmup_steps: see `SequenceModel`.
        **body: arguments of `UniversalRecurrence` for both sides: max_steps, halting, recurrence, num_heads,
            filter_size, norm, transition, signal, num_blocks, dropouts, remat; and of `MixedRecurrence`: mix,
            num_mixedin_layers.

    Call arguments:
        features: {"inputs": [B, L] int, "targets": [B, M] int}.
        training: dropout, random offsets.
        return_ponder: also return {"encoder": Ponder, "decoder": Ponder}.
        max_steps: steps of this call, for elastic depth.
        seed: [2] int32, dropout seed of this call; None: the next of the model's own.

    Returns:
        [B, M, V] float32 logits, and the dictionary where asked for.

    Raises:
        ValueError: `shared_embedding` with vocabularies of different sizes.

    Example:

    >>> model = UniversalTransformer(20, hidden_size=8, num_heads=2, filter_size=16, max_steps=3)
    >>> model({"inputs": keras.ops.array([[5, 6, 1]]), "targets": keras.ops.array([[6, 1]])}).shape.as_list()
    [1, 2, 20]

    Source: paper section 2; T2T universal_transformer.py.
    """

    make_body = staticmethod(recurrent_body)

    def __init__(
        self,
        vocabulary_size,
        target_vocabulary_size=None,
        hidden_size=512,
        shared_embedding=True,
        scale_embedding=True,
        words_per_sentence=None,
        numbering=None,
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
            "target_vocabulary_size": target_vocabulary_size,
            "hidden_size": hidden_size,
            "shared_embedding": shared_embedding,
            "scale_embedding": scale_embedding,
            "words_per_sentence": words_per_sentence,
            "numbering": numbering,
            "step_length": step_length,
            "target_space_id": target_space_id,
            **body,
        }
        target_vocabulary_size = target_vocabulary_size or vocabulary_size
        if shared_embedding and target_vocabulary_size != vocabulary_size:
            raise ValueError(
                f"shared_embedding=True needs equal vocabularies, not {vocabulary_size} and {target_vocabulary_size}"
            )
        policy = self.dtype_policy

        def table(size, name):
            return TokenEmbedding(size, hidden_size, scale_embedding, name=name, dtype=policy)

        self.input_embedding = table(vocabulary_size, "embedding" if shared_embedding else "input_embedding")
        self.target_embedding = self.softmax = self.input_embedding
        if not shared_embedding:
            self.target_embedding = table(target_vocabulary_size, "target_embedding")
            self.softmax = table(target_vocabulary_size, "softmax")
        encoder_body = self.make_body(name="body", dtype=policy, **body)
        self.encoder = EncoderSide(
            encoder_body,
            hidden_size,
            words_per_sentence,
            numbering,
            step_length,
            target_space_id,
            name="encoder",
            dtype=policy,
        )
        decoder_body = self.make_body(name="body", dtype=policy, causal=True, cross_attention=True, **body)
        self.decoder = DecoderSide(decoder_body, hidden_size, step_length, name="decoder", dtype=policy)
        self.build()

    def encode(self, features, max_steps=None):
        """Returns the memory of the inputs, a dictionary of tensors with the batch leading."""
        return self.encoder(features["inputs"], embedding=self.input_embedding, max_steps=max_steps)[0]

    def decode(self, targets, memory, max_steps=None, last=False, return_ponder=False):
        """Returns logits [B, M, V] for targets [B, M] and their ponder times; see `DecoderSide.decode`."""
        return self.decoder.decode(targets, self.target_embedding, self.softmax, memory, max_steps, last, return_ponder)

    def start_decoding(self, memory, max_steps=None):
        """Returns the `decoding.decoder.Decoder` of a batch, with a cache; `memory` is what `encode` returned."""
        return self.decoder.start_decoding(self.target_embedding, self.softmax, memory, max_steps)

    def call(self, features, training=None, return_ponder=False, max_steps=None, seed=None):
        logits, ponder, _ = self.run(features, max_steps, self._begin(training, seed))
        return self._finish(logits, ponder, return_ponder)

    def run(self, features, max_steps=None, seed=None, trace=False):
        """Returns (logits, {side: Ponder}, {side: traces}); `seed` None is inference."""
        if not isinstance(features, dict) or not {"inputs", "targets"} <= set(features):
            raise ValueError(f"{type(self).__name__} reads a dictionary of inputs and targets")
        inputs, targets = features["inputs"], features["targets"]
        offset = self._offset(inputs, seed)
        options = {"offset": offset, "max_steps": max_steps, "trace": trace}
        memory, encoder_ponder, encoder_trace = self.encoder(
            inputs, embedding=self.input_embedding, seed=fold_seed(seed, 1), **options
        )
        states, decoder_ponder, decoder_trace = self.decoder(
            targets, embedding=self.target_embedding, memory=memory, seed=fold_seed(seed, 2), **options
        )
        ponder = {"encoder": encoder_ponder, "decoder": decoder_ponder}
        traces = {"encoder": encoder_trace, "decoder": decoder_trace}
        if trace:
            traces["encoder"]["memory"], traces["decoder"]["states"] = memory["states"], states
        return self.softmax.logits(states), ponder, traces
