"""The Universal Transformer's arithmetic out of keras-hub's layers: one encoder and one decoder layer, called T times.

Embeddings, signals, softmax and dropout rates are those of the model that it is compared with, whose weights it
takes over, so that both give the same logits without dropout. keras-hub has no dropout inside the transition.

Shapes: B batch, L source and target length, D hidden size, H heads, T steps.
"""

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from ut_keras.layers.embedding import TokenEmbedding
from ut_keras.layers.timing import TimingSignal
from ut_keras.models.build import body_arguments


class KerasHubModel(keras.Model):
    """{"inputs": [B, L], "targets": [B, L]} int -> logits [B, L, V]; see the module.

    Args:
        hparams: `HParams` of a pre-norm universal_transformer without halting and with relu_dropout 0.
        vocabulary_size: V, of both sides.
    """

    def __init__(self, hparams, vocabulary_size):
        super().__init__()
        self.steps = hparams.num_rec_steps
        size = hparams.hidden_size
        signal = body_arguments(hparams)["signal"]
        block = {
            "intermediate_dim": hparams.filter_size,
            "num_heads": hparams.num_heads,
            "dropout": hparams.layer_prepostprocess_dropout,
            "layer_norm_epsilon": hparams.norm_epsilon,
            "normalize_first": True,
        }
        self.embedding = TokenEmbedding(vocabulary_size, size)
        self.timings = [TimingSignal(self.steps, **signal) for _ in range(2)]
        self.encoder = keras_hub.layers.TransformerEncoder(**block)
        self.decoder = keras_hub.layers.TransformerDecoder(**block)
        self.norms = [keras.layers.LayerNormalization(epsilon=hparams.norm_epsilon) for _ in range(2)]
        self.dropout = keras.layers.Dropout(hparams.layer_prepostprocess_dropout)
        shape = (None, None, size)
        for layer in (*self.timings, self.encoder, *self.norms):
            layer.build(shape)
        self.decoder.build(shape, shape)
        self.built = True

    def call(self, features, training=False):
        inputs, targets = features["inputs"], features["targets"]
        mask = tf.not_equal(inputs, 0)
        memory = self._run(
            self.embedding(inputs), 0, lambda x: self.encoder(x, padding_mask=mask, training=training), training
        )
        shifted = tf.pad(self.embedding(targets), [[0, 0], [1, 0], [0, 0]])[:, :-1]
        states = self._run(
            shifted,
            1,
            lambda x: self.decoder(x, memory, encoder_padding_mask=mask, training=training),
            training,
        )
        return self.embedding.logits(states)

    def _run(self, x, side, layer, training):
        x = self.dropout(x, training=training)
        signal = self.timings[side].prepare(tf.range(tf.shape(x)[1])[None, :])
        for step in range(self.steps):
            x = layer(self.timings[side].add_to(x, step, signal))
        return self.norms[side](x)

    def take_weights(self, model):
        """Copies the weights of a `UniversalTransformer`."""
        self.embedding.set_weights(model.input_embedding.get_weights())
        sides = ((model.encoder.body, self.encoder), (model.decoder.body, self.decoder))
        for (body, layer), timing, norm in zip(sides, self.timings, self.norms, strict=True):
            timing.set_weights(body.timing.get_weights())
            norm.set_weights(body.final_norm.get_weights())
            block = body.blocks[0]
            _copy_attention(block.self_attention, layer._self_attention_layer)
            layer._self_attention_layer_norm.set_weights(block.norms[0].get_weights())
            if block.encdec_attention is not None:
                _copy_attention(block.encdec_attention, layer._cross_attention_layer)
                layer._cross_attention_layer_norm.set_weights(block.norms[1].get_weights())
            layer._feedforward_layer_norm.set_weights(block.norms[-1].get_weights())
            kernel1, bias1, kernel2, bias2 = block.ffn.get_weights()
            layer._feedforward_intermediate_dense.set_weights([kernel1, bias1])
            layer._feedforward_output_dense.set_weights([kernel2, bias2])


def _copy_attention(ours, theirs):
    """Ours: four [D, D] kernels; theirs: kernels [D, H, E] or [H, E, D] and biases, which stay 0."""
    places = [index for index, weight in enumerate(theirs.get_weights()) if weight.ndim == 3]
    weights = theirs.get_weights()
    # Keras keeps them as query, key, value, output; ours as q, k, v, output.
    for place, kernel in zip(places, ours.get_weights(), strict=True):
        weights[place] = np.reshape(kernel, weights[place].shape)
    theirs.set_weights(weights)
