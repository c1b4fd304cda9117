"""The transition function of the block: fully connected, or two separable convolutions.

Legend: B batch, L length, D hidden size, F filter size.
"""

import keras
import tensorflow as tf

from ut_keras.layers.choices import one_of
from ut_keras.layers.dropout import dropout
from ut_keras.layers.projection import like


@keras.saving.register_keras_serializable("ut_keras")
class Transition(keras.layers.Layer):
    """relu(x W1 + b1) W2 + b2 at every position, or the same with separable convolutions of widths 3 and 5.

    Args:
        filter_size: F.
        kind: "fc" or "sepconv".
        causal: "sepconv" pads on the left only, so that a position never reads a later one.
        dropout: rate between the two parts.
        zero_padding: "fc" gives 0 at padding (what T2T's pad remover does).

    Call arguments:
        x: [B, L, D] float.
        padding_mask: [B, L] bool, True at real positions, or None. "sepconv" multiplies the input of each
            convolution by it; "fc" uses it with `zero_padding`.
        seed: [2] int32 for the dropout; None: no dropout.

    Returns:
        [B, L, D].

    Example:

    >>> Transition(8)(tf.ones([1, 3, 4])).shape.as_list()
    [1, 3, 4]

    Source: paper section 2.1; T2T layers/transformer_layers.py (transformer_ffn_layer), common_layers.py.
    """

    def __init__(self, filter_size, kind="fc", causal=False, dropout=0.0, zero_padding=False, **kwargs):
        super().__init__(**kwargs)
        self.filter_size = filter_size
        self.kind = kind
        self.causal = causal
        self.dropout = dropout
        self.zero_padding = zero_padding
        one_of("transition kind", kind, ("fc", "sepconv"))

    def build(self, shape):
        size = shape[-1]
        self._depthwise = []
        if self.kind == "sepconv":
            for index, (width, channels) in enumerate(((3, size), (5, self.filter_size)), 1):
                # Glorot's fans of a depthwise kernel [width, 1, channels, 1] in T2T: width*channels and width.
                limit = (6.0 / (width * channels + width)) ** 0.5
                weight = self.add_weight(
                    name=f"depthwise{index}",
                    shape=(width, channels),
                    initializer=keras.initializers.RandomUniform(-limit, limit),
                )
                self._depthwise.append(weight)
        self._kernel1 = self.add_weight(name="kernel1", shape=(size, self.filter_size), initializer="glorot_uniform")
        self._bias1 = self.add_weight(name="bias1", shape=(self.filter_size,), initializer="zeros")
        self._kernel2 = self.add_weight(name="kernel2", shape=(self.filter_size, size), initializer="glorot_uniform")
        self._bias2 = self.add_weight(name="bias2", shape=(size,), initializer="zeros")
        self.built = True

    def prepare(self):
        """Returns the weights as tensors of the compute type."""
        weights = [self._kernel1, self._bias1, self._kernel2, self._bias2, *self._depthwise]
        return [tf.cast(tf.convert_to_tensor(weight), self.compute_dtype) for weight in weights]

    def transform(self, x, context, padding_mask=None, seed=None, view=None):
        """Returns the transition [B, L, D] of x [B, L, D] under prepared weights.

        `view` is the `cache.CacheView` that holds what the convolutions read of earlier positions.
        """
        kernel1, bias1, kernel2, bias2, *depthwise = context
        real = None if padding_mask is None else tf.cast(padding_mask, x.dtype)[..., None]
        shape = like(x, x.shape[-1])
        if depthwise:
            x = self._convolve(x if real is None else x * real, depthwise[0], view, "inputs1")
        # Not bias_add: its gradient adds rows up one by one in the compute type, and bfloat16 sticks at 256.
        inner = tf.nn.relu(tf.matmul(tf.reshape(x, [-1, kernel1.shape[0]]), kernel1) + bias1)
        inner = dropout(inner, self.dropout, seed)
        if depthwise:
            inner = tf.reshape(inner, [*shape[:2], self.filter_size])
            inner = self._convolve(inner if real is None else inner * real, depthwise[1], view, "inputs2")
            inner = tf.reshape(inner, [-1, self.filter_size])
        outer = tf.reshape(tf.matmul(inner, kernel2) + bias2, shape)
        return outer * real if self.zero_padding and self.kind == "fc" and real is not None else outer

    def recent_inputs(self):
        """Returns {name: (positions, channels)} of what a cache keeps of the positions before."""
        if self.kind == "fc":
            return {}
        first, second = self._depthwise
        return {f"inputs{i}": (w.shape[0] - 1, w.shape[1]) for i, w in ((1, first), (2, second))}

    def _convolve(self, x, kernel, view, name):
        if view is None:
            return _depthwise_convolution(x, kernel, self.causal)
        whole = view.with_recent(name, x)
        return tf.reshape(_depthwise_convolution(whole, kernel, None), tf.shape(x))

    def call(self, x, padding_mask=None, seed=None):
        return self.transform(x, self.prepare(), padding_mask, seed)

    def get_config(self):
        names = ("filter_size", "kind", "causal", "dropout", "zero_padding")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def _depthwise_convolution(x, kernel, causal):
    """x [B, L, C] with kernel [W, C]: each channel by itself, as W shifted products (XLA and CPU like it).

    Zeros stand before the first position (and, unless `causal`, half of them behind the last). With `causal` None
    nothing is added: the result [B, L - W + 1, C] is of the positions that have all their inputs.
    """
    width = kernel.shape[0]
    left = 0 if causal is None else width - 1 if causal else (width - 1) // 2
    right = 0 if causal is None else width - 1 - left
    length = tf.shape(x)[1] + left + right - width + 1
    padded = tf.pad(x, [[0, 0], [left, right], [0, 0]])
    return tf.add_n([padded[:, shift : shift + length] * kernel[shift] for shift in range(width)])
