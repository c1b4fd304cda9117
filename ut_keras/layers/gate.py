"""Gates of a recurrence type: one or two dense layers over some states, several gates in one product.

Legend: B batch, L length, D hidden size, N inputs, F filter size.
"""

import keras
import tensorflow as tf

from ut_keras.layers.choices import one_of
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.projection import project

KINDS = ("dense", "dense_relu_dense", "dense_dropconnect")


@keras.saving.register_keras_serializable("ut_keras")
class Gates(keras.layers.Layer):
    """Gates that all read the same inputs; what they give is linear, the caller squashes it.

    Args:
        biases: {name: initial bias}, the gates.
        kind: "dense": W [x1, x2, ...] + b; "dense_relu_dense": the same of a hidden layer of F relu units;
            "dense_dropconnect": "dense" whose single weights are dropped in training. T2T's dropconnect handed the
            rate to a kernel regulariser, which dropped nothing, and its dense_relu_dense ignored the initial bias.
        dropconnect: rate of "dense_dropconnect".
        filter_size: F of "dense_relu_dense".
        relu_dropout: rate on its hidden layer.

    Call arguments:
        inputs: list of [B, L, D], at least one.
        seed: [2] int32 for the dropouts; None: no dropout.

    Returns:
        A list of [B, L, D], one for each gate.

    Example:

    >>> update, reset = Gates({"update": 1.0, "reset": 1.0})([tf.zeros([1, 3, 4]), tf.zeros([1, 3, 4])])
    >>> update.numpy()[0, 0].tolist()
    [1.0, 1.0, 1.0, 1.0]

    Source: T2T universal_transformer_util.py (_ffn_layer_multi_inputs).
    """

    def __init__(self, biases, kind="dense", dropconnect=0.0, filter_size=2048, relu_dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.biases = dict(biases)
        self.kind = one_of("gate kind", kind, KINDS)
        self.dropconnect = dropconnect if kind == "dense_dropconnect" else 0.0
        self.filter_size = filter_size
        self.relu_dropout = relu_dropout

    def build(self, shapes):
        """`shapes`: those of the inputs, of which the last axis counts."""
        rows, size = sum(shape[-1] for shape in shapes), shapes[0][-1]
        self._layers_of = {}
        for gate, bias in self.biases.items():
            sizes = [rows, self.filter_size, size] if self.kind == "dense_relu_dense" else [rows, size]
            layers = []
            for number, (before, after) in enumerate(zip(sizes, sizes[1:]), 1):
                last = number == len(sizes) - 1
                name = gate if len(sizes) == 2 else f"{gate}{number}"
                kernel = self.add_weight(name=f"{name}_kernel", shape=(before, after), initializer="glorot_uniform")
                start = keras.initializers.Constant(bias if last else 0.0)
                layers.append((kernel, self.add_weight(name=f"{name}_bias", shape=(after,), initializer=start)))
            self._layers_of[gate] = layers
        self.built = True

    def variables_of(self, gate):
        """Returns [(kernel, bias), ...] of a gate, one pair for each of its layers."""
        return self._layers_of[gate]

    def prepare(self):
        """Returns the weights as tensors of the compute type: of gates of one layer side by side."""
        pairs = [[self._tensors(pair) for pair in layers] for layers in self._layers_of.values()]
        if self.kind == "dense_relu_dense":
            return pairs
        kernels, biases = zip(*(layers[0] for layers in pairs))
        return tf.concat(kernels, axis=1), tf.concat(biases, axis=0)

    def _tensors(self, pair):
        return [tf.cast(tf.convert_to_tensor(weight), self.compute_dtype) for weight in pair]

    def apply(self, inputs, weights, seed=None):
        """Returns the gates, a list of [B, L, D], for a list of inputs [B, L, D] under prepared weights."""
        x = inputs[0] if len(inputs) == 1 else tf.concat(inputs, axis=-1)
        if self.kind == "dense_relu_dense":
            return [self._two_layers(x, pairs, fold_seed(seed, index)) for index, pairs in enumerate(weights)]
        kernel, bias = weights
        return tf.split(project(x, dropout(kernel, self.dropconnect, seed)) + bias, len(self.biases), axis=-1)

    def _two_layers(self, x, pairs, seed):
        (kernel1, bias1), (kernel2, bias2) = pairs
        inner = dropout(tf.nn.relu(project(x, kernel1) + bias1), self.relu_dropout, seed)
        return project(inner, kernel2) + bias2

    def call(self, inputs, seed=None):
        return self.apply(inputs, self.prepare(), seed)

    def get_config(self):
        names = ("biases", "kind", "dropconnect", "filter_size", "relu_dropout")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def masked(x, real):
    """Returns x [B, L, D], 0 where `real` [B, L, 1] is; all of it where that is None."""
    return x if real is None else x * tf.cast(real, x.dtype)


def squashed(linear, real=None):
    """Returns a gate's sigmoid [B, L, D], 0 at padding where `real` says so."""
    return masked(tf.sigmoid(linear), real)
