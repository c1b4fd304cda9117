"""Simple recurrent units (SRU): recurrent layers over the positions whose products do not wait for each other.

Legend: B batch, L length, D hidden size; with a cache K hypotheses and Q new positions.
"""

import keras
import tensorflow as tf

from ut_keras.layers.linear_recurrence import linear_recurrence
from ut_keras.layers.projection import project


@keras.saving.register_keras_serializable("ut_keras")
class Sru(keras.layers.Layer):
    """Layers of simple recurrent units, from the first position to the last, so that no position reads a later one.

    Each layer: candidate, f, r = x W + b; f and r through a sigmoid;
    c_t = f_t c_(t-1) + (1 - f_t) candidate_t, from 0; h_t = r_t c_t + (1 - r_t) x_t.
    States and gates are float32 under every precision policy.

    Args:
        num_layers: layers, one above the other.

    Call arguments:
        x: [B, L, D] float. What is padding behind a sequence is read by no real position.

    Returns:
        [B, L, D].

    Example:

    >>> Sru()(tf.ones([1, 3, 4])).shape.as_list()
    [1, 3, 4]

    Source: Lei et al. 2017 (arXiv 1709.02755), without its nonlinearity; T2T layers/common_layers.py (sru).
    """

    def __init__(self, num_layers=2, **kwargs):
        super().__init__(**kwargs)
        if num_layers < 1:
            raise ValueError(f"num_layers={num_layers}: there has to be at least one layer")
        self.num_layers = num_layers

    def build(self, shape):
        size = shape[-1]
        self.kernels, self.biases = [], []
        for index in range(self.num_layers):
            self.kernels.append(
                self.add_weight(name=f"kernel_{index}", shape=(size, 3 * size), initializer="glorot_uniform")
            )
            self.biases.append(
                self.add_weight(name=f"bias_{index}", shape=(3 * size,), initializer="zeros", autocast=False)
            )
        self.built = True

    def prepare(self):
        """Returns the weights as tensors, [(kernel of the compute type, bias float32) of each layer]."""
        kernels = [tf.cast(tf.convert_to_tensor(kernel), self.compute_dtype) for kernel in self.kernels]
        biases = [tf.cast(tf.convert_to_tensor(bias), tf.float32) for bias in self.biases]
        return list(zip(kernels, biases, strict=True))

    def latest_states(self):
        """Returns {name: shape} of what a cache keeps in float32 of the latest position."""
        return {"sru": (self.num_layers, self.kernels[0].shape[0])}

    def transform(self, x, weights, view=None):
        """Returns the last layer's h [B, L, D] for x [B, L, D] under prepared weights.

        With `view`, the `cache.CacheView` of the positions before, x is [B, K*Q, D].
        """
        shape, dtype, size = tf.shape(x), x.dtype, x.shape[-1]
        before = [None] * self.num_layers
        if view is not None:
            # [B, K, layers, D], and each hypothesis as a row of its own.
            states = view.latest("sru")
            before = tf.unstack(tf.reshape(states, [-1, self.num_layers, size]), axis=1)
            count = 1 if x.shape[1] == view.places.hypotheses else -1
            x = tf.reshape(x, [tf.shape(before[0])[0], count, size])
        x = tf.cast(x, tf.float32)
        last = []
        for (kernel, bias), initial in zip(weights, before, strict=True):
            projected = tf.cast(project(tf.cast(x, dtype), kernel), tf.float32) + bias
            candidate, forget, reset = tf.split(projected, 3, axis=-1)
            forget, reset = tf.sigmoid(forget), tf.sigmoid(reset)
            cell = linear_recurrence(forget, (1.0 - forget) * candidate, initial)
            if view is not None:
                # Behind what was there before, since there may be no new position.
                last.append(tf.concat([initial[:, None], cell], axis=1)[:, -1])
            x = reset * cell + (1.0 - reset) * x
        if view is not None:
            view.keep("sru", tf.reshape(tf.stack(last, axis=1), tf.shape(states)))
            x = tf.reshape(x, shape)
        return tf.cast(x, dtype)

    def call(self, x):
        return self.transform(x, self.prepare())

    def get_config(self):
        return {**super().get_config(), "num_layers": self.num_layers}
