"""Layer norm over the last axis, with its gradient written out: half the passes over memory of the generic one."""

import keras
import tensorflow as tf

from ut_keras.layers.custom_gradient import custom_gradient


@keras.saving.register_keras_serializable("ut_keras")
class LayerNorm(keras.layers.Layer):
    """y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis, statistics in float32.

    Args:
        epsilon: added to the (biased) variance.

    Call arguments:
        x: [..., D] float.

    Example:

    >>> LayerNorm()(tf.constant([[1.0, 3.0]])).numpy().round(3).tolist()
    [[-1.0, 1.0]]

    Source: Ba et al. 2016; T2T layers/common_layers.py (epsilon 1e-6).
    """

    def __init__(self, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")
        self.bias = self.add_weight(name="bias", shape=(shape[-1],), initializer="zeros")
        self.built = True

    def prepare(self):
        """Returns the weights as tensors."""
        return tf.convert_to_tensor(self.scale), tf.convert_to_tensor(self.bias)

    def normalize(self, x, context):
        """Returns the layer norm of x under prepared weights."""
        return layer_norm(x, *context, self.epsilon)

    def call(self, x):
        return self.normalize(x, self.prepare())

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}


def layer_norm(x, scale, bias, epsilon):
    """Returns the layer norm of x [..., D] with scale [D] and bias [D], statistics in float32."""
    normalized = _normalize(tf.cast(x, tf.float32), epsilon)
    return tf.cast(normalized, x.dtype) * tf.cast(scale, x.dtype) + tf.cast(bias, x.dtype)


def _normalize(x, epsilon):
    @custom_gradient
    def normalize(x):
        centered = x - tf.reduce_mean(x, -1, keepdims=True)
        inverse = tf.math.rsqrt(tf.reduce_mean(tf.square(centered), -1, keepdims=True) + epsilon)
        y = centered * inverse

        def gradient(upstream):
            along = tf.reduce_mean(upstream * y, -1, keepdims=True)
            return inverse * (upstream - tf.reduce_mean(upstream, -1, keepdims=True) - y * along)

        return y, gradient

    return normalize(x)
