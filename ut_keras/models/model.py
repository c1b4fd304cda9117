"""What all models share: seeds, position offsets, the ponder cost for `fit`, and generation.

Legend: B batch, L length, M target length, D hidden size, V vocabulary size.
"""

import keras
import numpy as np
import tensorflow as tf

from ut_keras.layers.custom_gradient import never_differentiated
from ut_keras.layers.dropout import fold_seed
from ut_keras.losses import ponder_sums


class SequenceModel(keras.Model):
    """Base of the models. A subclass calls `self._begin` and `self._finish` in its `call`, and keeps in
    `self._arguments` the arguments of its constructor that are not named here.

    Args:
        random_offset: > 0: in training, positions start from an offset drawn uniformly from 0 to this (exclusive),
            one per sequence and forward pass, the same for source and target.
        ponder_weight: weight of the ponder cost that `fit` adds to the loss: the mean over real positions of steps
            plus remainder, of encoder plus decoder. The trainer does its own accounting. 0 without halting,
            where the cost would be a constant.
        ponder_warmup_steps: training steps over which that weight rises from 0.
    """

    def __init__(
        self, random_offset=0, ponder_weight=0.01, ponder_warmup_steps=0, halting="none", name=None, dtype=None
    ):
        super().__init__(name=name, dtype=dtype)
        self.random_offset = random_offset
        self.ponder_weight = 0.0 if halting in (None, "none") else ponder_weight
        self.ponder_warmup_steps = ponder_warmup_steps
        self._seeds = keras.random.SeedGenerator(name="seeds")

    def build(self, shape=None):
        self.built = True

    def __call__(self, features, *args, **kwargs):
        # Keras takes nothing but tensors and arrays; a notebook's lists are as good.
        return super().__call__(as_arrays(features), *args, **kwargs)

    def compile(self, *args, jit_compile=False, **kwargs):
        """As `keras.Model.compile`, without XLA unless it is asked for: "auto" turns it on where there is one GPU."""
        super().compile(*args, jit_compile=jit_compile, **kwargs)

    def compile_from_config(self, config):
        """As `keras.Model.compile_from_config`, which leaves a model whose `compile` is its own uncompiled."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def train_step(self, data):
        """As `keras.Model.train_step`, whose graph no optimizer keeps alive."""
        with never_differentiated():
            return super().train_step(data)

    def generate(self, ids, max_length=None, **options):
        """Returns the answer to each row of a batch, by greedy search unless options say otherwise.

        Args:
            ids: [B, L] int inputs (or [B, S, W] sentences); for a language model, the [B, P] prefixes.
            max_length: int or [B], most tokens to make, the end token included and a prefix not; by default input
                length + 100.
            **options: fields of `ut_keras.decoding.options.DecodingOptions`: `beam_size=4`, `alpha=0.6`, `n_best=4`;
                `temperature=1`, `top_k=40`, `top_p=0.9`, `seed=1`; `max_steps=2` for fewer recurrent steps.

        Returns:
            [B, N] int32 numpy array, 0 after the end token; with n_best > 1 [B, n, N], the best first.

        Raises:
            UserError: an id outside of the vocabulary, or an option that does not exist or does not fit.
        """
        from ut_keras.decoding.generate import generate

        return generate(self, ids, max_length=max_length, **options)

    def _begin(self, training, seed):
        """Returns the seed of this call: the one given, the next of our own in training, or None."""
        if not training:
            return None
        return tf.cast(self._seeds.next(), tf.int32) if seed is None else tf.cast(seed, tf.int32)

    def _offset(self, ids, seed):
        """Returns the position offset [B, 1] int32; [1, 1] zeros outside of training."""
        if seed is None or not self.random_offset:
            return tf.zeros([1, 1], tf.int32)
        shape = (tf.shape(ids)[0], 1)
        return tf.random.stateless_uniform(shape, fold_seed(seed, -3), 0, self.random_offset, tf.int32)

    def _finish(self, logits, ponder, return_ponder):
        """Adds the ponder cost for `fit`, and returns what the call returns."""
        ponder = {side: value for side, value in ponder.items() if value}
        if ponder and self.ponder_weight:
            means = [tf.math.divide_no_nan(total, count) for total, count in ponder_sums(ponder).values()]
            weight = tf.constant(self.ponder_weight, tf.float32)
            optimizer = getattr(self, "optimizer", None)
            if self.ponder_warmup_steps and optimizer is not None:
                done = tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.float32)
                weight *= tf.minimum(1.0, done / self.ponder_warmup_steps)
            self.add_loss(weight * tf.add_n(means))
        return (logits, ponder) if return_ponder else logits

    def get_config(self):
        names = ("random_offset", "ponder_weight", "ponder_warmup_steps", "name")
        policy = keras.saving.serialize_keras_object(self.dtype_policy)
        return {"dtype": policy, **{name: getattr(self, name) for name in names}, **self._arguments}


def as_arrays(features):
    """Returns ids, or a dictionary of ids, with lists made int32 arrays."""
    if isinstance(features, dict):
        return {name: as_arrays(value) for name, value in features.items()}
    return np.asarray(features, np.int32) if isinstance(features, list | tuple) else features


def check_rank(ids, words_per_sentence):
    """Returns ids as int32; ValueError where they are no sentences and should be, or the other way round."""
    rank = 3 if words_per_sentence else 2
    if len(ids.shape) != rank:
        shape = "[B, S, W] sentences" if words_per_sentence else "[B, L] ids (words_per_sentence is None)"
        raise ValueError(f"inputs of shape {tuple(ids.shape)}: this model reads {shape}")
    return tf.cast(ids, tf.int32)
