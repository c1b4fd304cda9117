"""The recurrent baseline: an LSTM encoder and an LSTM decoder, with or without attention.

Legend: B batch, L source length, M target length, W words of a sentence, D hidden size, V target vocabulary size.
"""

import keras
import tensorflow as tf

from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.embedding import SentenceEmbedding, TokenEmbedding
from ut_keras.layers.masks import attention_bias, sequence_mask
from ut_keras.layers.projection import project
from ut_keras.models.model import SequenceModel, check_rank


@keras.saving.register_keras_serializable("ut_keras")
class LSTMSeq2Seq(SequenceModel):
    """LSTM encoder over the reversed inputs; its last states start the LSTM decoder.

    With `attention`, each decoder output reads the encoder's outputs (Luong et al. 2015, eq. 5 and "general"
    scores); unlike in T2T's wrapper, what was read is not fed to the next position, so that all positions
    of a training step attend at once.

    Masking: id 0 is padding and comes after the real ids of a row. Padding moves no state, is not attended to,
    and changes no output at a real position.

    Args:
        vocabulary_size: number of input ids, padding and end token included.
        target_vocabulary_size: V; None: as many.
        hidden_size: D, of embeddings and cells.
        num_layers: LSTM layers on either side.
        attention: whether the decoder attends to the encoder's outputs.
        dropout: rate on the input of each LSTM layer and on what the softmax reads.
        words_per_sentence: W where inputs are [B, L, W] sentences of words.

    Call arguments:
        features: {"inputs": [B, L] or [B, L, W] int, "targets": [B, M] int}; targets are unshifted.
        training: whether there is dropout.
        return_ponder: also return {}, for one call convention with the Universal Transformer.
        seed: [2] int32, the seed of the dropout; None: the next of the model's own.

    Returns:
        [B, M, V] float32 logits.

    Raises:
        ValueError: `max_steps`, or no inputs.

    Example:

    >>> model = LSTMSeq2Seq(vocabulary_size=8, target_vocabulary_size=5, hidden_size=4)
    >>> model({"inputs": tf.constant([[3, 4, 1]]), "targets": tf.constant([[2, 1]])}).shape.as_list()
    [1, 2, 5]

    Source: Sutskever et al. 2014; T2T models/lstm.py (lstm_seq2seq, lstm_seq2seq_attention).
    """

    def __init__(
        self,
        vocabulary_size,
        target_vocabulary_size=None,
        hidden_size=128,
        num_layers=2,
        attention=False,
        dropout=0.0,
        words_per_sentence=None,
        name=None,
        dtype=None,
    ):
        super().__init__(name=name, dtype=dtype)
        self._arguments = {
            "vocabulary_size": vocabulary_size,
            "target_vocabulary_size": target_vocabulary_size,
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "attention": attention,
            "dropout": dropout,
            "words_per_sentence": words_per_sentence,
        }
        self.dropout = dropout
        policy, size = self.dtype_policy, hidden_size
        target_vocabulary_size = target_vocabulary_size or vocabulary_size
        self.input_embedding = TokenEmbedding(vocabulary_size, size, name="input_embedding", dtype=policy)
        self.target_embedding = TokenEmbedding(target_vocabulary_size, size, name="target_embedding", dtype=policy)
        self.softmax = TokenEmbedding(target_vocabulary_size, size, name="softmax", dtype=policy)
        self.sentences = None
        if words_per_sentence:
            self.sentences = SentenceEmbedding(words_per_sentence, name="sentences", dtype=policy)
            self.sentences.build((None, None, None, size))
        self.encoder = [_lstm(size, f"encoder_{i}", policy) for i in range(num_layers)]
        self.decoder = [_lstm(size, f"decoder_{i}", policy) for i in range(num_layers)]
        self.attention = _Attention(size, name="attention", dtype=policy) if attention else None
        self.build()

    def call(self, features, training=False, return_ponder=False, max_steps=None, seed=None):
        seed = self._begin(training, seed)
        logits = self.decode(features["targets"], self.encode(features, max_steps, seed), max_steps, seed)
        return (logits, {}) if return_ponder else logits

    def encode(self, features, max_steps=None, seed=None):
        """Returns what the decoder reads: the last states of each layer, and with attention all outputs.

        Args:
            features: {"inputs": [B, L] or [B, L, W] int}.
            max_steps: None; an LSTM has no recurrence over depth.
            seed: [2] int32 for dropout, or None.
        """
        if max_steps is not None:
            raise ValueError(f"max_steps={max_steps}: an LSTM has no recurrence over depth")
        if "inputs" not in features:
            raise ValueError("LSTMSeq2Seq needs inputs; it is no language model")
        ids = check_rank(tf.convert_to_tensor(features["inputs"]), self.sentences is not None)
        if not ids.shape[1]:
            # Keras' LSTM looks at a first position, whether or not there is one.
            ids = tf.pad(ids, [[0, 0], [0, tf.maximum(1 - tf.shape(ids)[1], 0)], *[[0, 0]] * (len(ids.shape) - 2)])
        states, mask = self.input_embedding(ids), sequence_mask(ids)
        if self.sentences is not None:
            states = self.sentences(states, mask)
        lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
        states = tf.reverse_sequence(states, lengths, seq_axis=1, batch_axis=0)
        last = []
        for index, layer in enumerate(self.encoder):
            states, *state = layer(dropout(states, self.dropout, fold_seed(seed, index)), mask=mask)
            last.append(list(state))
        return {"states": last, "outputs": states, "mask": mask} if self.attention else {"states": last}

    def decode(self, targets, memory, max_steps=None, seed=None, last=False):
        """Returns logits [B, M, V]; position i predicts targets[i] from the targets before it.

        Args:
            targets: [B, M] int, unshifted.
            memory: what `encode` returned.
            max_steps: None, as in `encode`.
            seed: [2] int32 for dropout, or None.
            last: return the logits of the last position alone, [B, 1, V].
        """
        states = tf.pad(self.target_embedding(targets), [[0, 0], [1, 0], [0, 0]])[:, :-1]
        seed = fold_seed(seed, -1)
        for index, (layer, state) in enumerate(zip(self.decoder, memory["states"], strict=True)):
            states, *_ = layer(dropout(states, self.dropout, fold_seed(seed, index)), initial_state=list(state))
        return self.predict_from(states[:, -1:] if last else states, memory, fold_seed(seed, -1))

    def predict_from(self, states, memory, seed=None):
        """Returns logits [B, M, V] of the decoder's outputs [B, M, D]."""
        if self.attention is not None:
            states = self.attention(states, memory["outputs"], memory["mask"])
        return self.softmax.logits(dropout(states, self.dropout, seed))

    def start_decoding(self, memory, max_steps=None):
        """Returns the `decoding.decoder.Decoder` of a batch, which keeps the states; `memory` is what `encode` gave."""
        from ut_keras.decoding.lstm import LSTMDecoder

        return LSTMDecoder(self, memory)

    def get_config(self):
        policy = keras.saving.serialize_keras_object(self.dtype_policy)
        return {"name": self.name, "dtype": policy, **self._arguments}


class _Attention(keras.layers.Layer):
    """tanh(W [context, h]), context the mean of the outputs under softmax(h U outputs). Padding reads as 0."""

    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)
        self.size = size
        self._score = self.add_weight(name="score", shape=(size, size), initializer="glorot_uniform")
        self._mix = self.add_weight(name="mix", shape=(2 * size, size), initializer="glorot_uniform")

    def call(self, states, outputs, memory_mask):
        score, mix = (tf.cast(tf.convert_to_tensor(w), states.dtype) for w in (self._score, self._mix))
        logits = tf.matmul(project(states, score), outputs, transpose_b=True)
        logits += attention_bias(memory_mask[:, None, :], logits.dtype)[:, 0]
        weights = tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32)), states.dtype)
        context = tf.matmul(weights, outputs * tf.cast(memory_mask, states.dtype)[..., None])
        return tf.tanh(project(tf.concat([context, states], axis=-1), mix))


def _lstm(size, name, policy):
    # cuDNN is used or not by the shape of the mask, with other numbers; one implementation for all batches.
    layer = keras.layers.LSTM(size, return_sequences=True, return_state=True, use_cudnn=False, name=name, dtype=policy)
    layer.build((None, None, size))
    return layer
