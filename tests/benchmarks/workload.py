"""What the benchmarks run: two sizes, a batch without padding, and one way to make a step of any model.

Shapes: B batch, L source and target length, D hidden size, H heads, F filter size, T steps, V vocabulary.
"""

import numpy as np
import tensorflow as tf

from ut_keras import losses, optimizers
from ut_keras.decoding.decoder import EOS, Decoder
from ut_keras.decoding.search import decoder_of, search
from ut_keras.hparams import Features, HParams
from ut_keras.models.build import build_model

VOCABULARY = 1000
CONFIGS = {
    "small": {"hidden_size": 128, "num_heads": 4, "filter_size": 512, "steps": 6, "length": 64, "batch": 32},
    "large": {"hidden_size": 512, "num_heads": 8, "filter_size": 2048, "steps": 6, "length": 64, "batch": 8},
}
_SIGNATURE = {name: tf.TensorSpec([None, None], tf.int32) for name in ("inputs", "targets")}


def hparams(config, model="universal_transformer", halting="none", dropout=0.1, **changes):
    """Returns the `HParams` of a config; with halting, `steps` is the most there are."""
    steps = {"num_hidden_layers": config["steps"]}
    if model == "universal_transformer":
        steps = {"num_rec_steps": config["steps"]}
        if halting != "none":
            steps = {"recurrence_type": "act", "act_type": halting, "act_max_steps": config["steps"]}
    sizes = {name: config[name] for name in ("hidden_size", "num_heads", "filter_size")}
    rates = dict.fromkeys(("layer_prepostprocess_dropout", "attention_dropout", "relu_dropout"), dropout)
    return HParams(model=model).override({**sizes, **steps, **rates, **changes})


def make_model(hparams):
    """Returns the sequence-to-sequence model of `hparams` over the benchmark's vocabulary."""
    return build_model(hparams, Features("sequence", VOCABULARY, VOCABULARY))


def make_batch(config, seed=0):
    """Returns {"inputs": [B, L], "targets": [B, L]} int32 without padding."""
    rng = np.random.default_rng(seed)
    shape = config["batch"], config["length"]
    return {name: tf.constant(rng.integers(2, VOCABULARY, shape), tf.int32) for name in ("inputs", "targets")}


def training_step(model, hparams, ponder=True):
    """Returns a function that takes one Adam step on a batch: forward, loss, backward, update; it returns the loss.

    Traced once for all shapes, as the trainer's step is. `ponder`: the model gives its ponder times.
    """
    optimizer = optimizers.from_hparams(hparams)
    optimizer.build(model.trainable_variables)

    @tf.function(input_signature=[_SIGNATURE])
    def step(batch):
        with tf.GradientTape() as tape:
            if ponder:
                logits, times = model(batch, training=True, return_ponder=True)
            else:
                logits, times = model(batch, training=True), {}
            total, count = losses.token_cross_entropy_sums(logits, batch["targets"], hparams.label_smoothing)
            loss = total / count
            for cost, positions in losses.ponder_sums(times).values():
                loss += hparams.act_loss_weight * cost / positions
        gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
        optimizer.apply(gradients)
        return loss

    return lambda batch: step(batch).numpy()


def forward(model):
    """Returns a function that computes the logits of a batch, without dropout."""

    @tf.function(input_signature=[_SIGNATURE])
    def run(batch):
        return model(batch)

    return lambda batch: run(batch).numpy()


def decoding(model, options, config, encode_again=False):
    """Returns a function that decodes one batch of random inputs, exactly `length` tokens for each row.

    Args:
        model: a sequence-to-sequence model.
        options: `DecodingOptions`.
        config: one of `CONFIGS`, its "batch" the rows.
        encode_again: run the encoder for each token as well; needs `cached=False`.
    """
    inputs = make_batch(config)["inputs"]

    @tf.function(input_signature=[_SIGNATURE["inputs"]])
    def run(inputs):
        rows, zeros = tf.shape(inputs)[0], tf.zeros_like(inputs[:, 0])
        decoder = _NoEnd(decoder_of(model, model.encode({"inputs": inputs}), options))
        if encode_again:
            decoder.encode = lambda: tf.nest.flatten(model.encode({"inputs": inputs}))
        return search(decoder, tf.zeros([rows, 0], tf.int32), zeros, zeros + config["length"], options).ids

    return lambda: run(inputs).numpy()


class _NoEnd(Decoder):
    """A decoder that never predicts the end token; all else is another decoder's.

    `encode`, where it is set, makes the memory of a `RecomputedDecoder` anew for each id.
    """

    encode = None

    def __init__(self, decoder):
        self._decoder = decoder
        for name in ("start", "reorder", "select", "grow", "invariants"):
            setattr(self, name, getattr(decoder, name))

    def step(self, state, ids, position):
        if self.encode:
            state = {**state, "memory": self.encode()}
        logits, times, state = self._decoder.step(state, ids, position)
        return logits - 1e9 * tf.one_hot(EOS, VOCABULARY), times, state
