"""Adafactor as tensor2tensor has it."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="ut_keras")
class Adafactor(keras.optimizers.Optimizer):
    """Adafactor (Shazeer and Stern 2018, https://arxiv.org/abs/1804.04235), as in tensor2tensor's utils/adafactor.py.

    With g the gradient, s the number of updates before this one and t = s + 1, per variable w:

        d     = 1 - t^-memory_exponent (pow), or beta_2 (1 - beta_2^s) / (1 - beta_2^t) (adam): 0 at first
        r     = d r + (1 - d) mean over the last axis of (g^2 + epsilon_1), and c over the last but one
        v     = r c / mean(r) over the last axis; without factors v = d v + (1 - d) (g^2 + epsilon_1)
        u     = g / sqrt(v), divided by max(1, rms(u) / clipping_threshold)
        delta = rate(s) * max(epsilon_2, rms(w)) * u
        m     = beta_1 m + (1 - beta_1) delta, if beta_1 > 0; then delta = m
        w     = w - delta

    It differs from Keras' Adafactor: the schedule's rate is taken as it is (Keras cuts it to t^-0.5), a factored
    variable keeps r and c alone (Keras keeps v as well, as much memory as the weights), and momentum, the other decay,
    unfactored moments and absolute rates are there. Factors are of the last two dimensions of a variable;
    variables of one dimension are not factored.

    Args:
        learning_rate: number or schedule; relative to each variable's scale if `multiply_by_parameter_scale`.
        beta_1: decay of the momentum of the updates; 0: none is kept.
        beta_2: of decay type "adam".
        decay_type: "pow" or "adam".
        memory_exponent: of decay type "pow".
        factored: whether second moments of variables of two dimensions and more are factored.
        clipping_threshold: largest root mean square of a variable's update before the rate; 0: no limit.
        multiply_by_parameter_scale: whether the rate is relative to the variable's root mean square.
        epsilon_1, epsilon_2: added to squared gradients; the least scale of a variable.
        name, **kwargs: as of `keras.optimizers.Optimizer`.

    Example:

    >>> weight = keras.Variable([3.0, -4.0])
    >>> Adafactor(0.5, multiply_by_parameter_scale=False).apply([tf.constant([7.0, -0.1])], [weight])
    >>> weight.numpy().tolist()
    [2.5, -3.5]
    """

    def __init__(
        self,
        learning_rate=0.01,
        beta_1=0.0,
        beta_2=0.999,
        decay_type="pow",
        memory_exponent=0.8,
        factored=True,
        clipping_threshold=1.0,
        multiply_by_parameter_scale=True,
        epsilon_1=1e-30,
        epsilon_2=1e-3,
        name="adafactor",
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.decay_type = decay_type
        self.memory_exponent = memory_exponent
        self.factored = factored
        self.clipping_threshold = clipping_threshold
        self.multiply_by_parameter_scale = multiply_by_parameter_scale
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._rows, self._columns, self._moments, self._momentums = [], [], [], []
        for variable in variables:
            shape, dtype, factored = variable.shape, variable.dtype, self._is_factored(variable)
            row = self.add_variable(shape[:-1], dtype=dtype, name="row") if factored else None
            column = self.add_variable(shape[:-2] + shape[-1:], dtype=dtype, name="column") if factored else None
            self._rows.append(row)
            self._columns.append(column)
            self._moments.append(None if factored else self.add_variable_from_reference(variable, "moment"))
            self._momentums.append(self.add_variable_from_reference(variable, "momentum") if self.beta_1 else None)

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        gradient = tf.cast(gradient, variable.dtype)
        decay = tf.cast(self._decay(), variable.dtype)
        square = tf.square(gradient) + self.epsilon_1
        if self._is_factored(variable):
            row = _mixed(decay, self._rows[index], tf.reduce_mean(square, axis=-1))
            column = _mixed(decay, self._columns[index], tf.reduce_mean(square, axis=-2))
            # Not the root of a quotient: that of a row without gradient, epsilon_1, could fall to 0.
            row_factor = tf.math.rsqrt(row) * tf.sqrt(tf.reduce_mean(row, axis=-1, keepdims=True))
            update = gradient * row_factor[..., None] * tf.math.rsqrt(column)[..., None, :]
            self.assign(self._rows[index], row)
            self.assign(self._columns[index], column)
        else:
            moment = _mixed(decay, self._moments[index], square)
            update = gradient * tf.math.rsqrt(moment)
            self.assign(self._moments[index], moment)
        if self.clipping_threshold:
            update /= tf.maximum(1.0, _root_mean_square(update) / self.clipping_threshold)
        rate = tf.cast(learning_rate, variable.dtype)
        if self.multiply_by_parameter_scale:
            rate *= tf.maximum(_root_mean_square(variable), self.epsilon_2)
        delta = rate * update
        if self.beta_1:
            delta = _mixed(self.beta_1, self._momentums[index], delta)
            self.assign(self._momentums[index], delta)
        self.assign_sub(variable, delta)

    def get_config(self):
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "decay_type": self.decay_type,
            "memory_exponent": self.memory_exponent,
            "factored": self.factored,
            "clipping_threshold": self.clipping_threshold,
            "multiply_by_parameter_scale": self.multiply_by_parameter_scale,
            "epsilon_1": self.epsilon_1,
            "epsilon_2": self.epsilon_2,
        }

    def _is_factored(self, variable):
        return self.factored and len(variable.shape) >= 2

    def _decay(self):
        before = tf.cast(self.iterations.value, tf.float32)
        if self.decay_type == "adam":
            beta = tf.constant(self.beta_2)
            return beta * (1.0 - tf.pow(beta, before)) / (1.0 - tf.pow(beta, before + 1.0))
        return 1.0 - tf.pow(before + 1.0, -self.memory_exponent)


def _mixed(decay, old, new):
    return decay * tf.convert_to_tensor(old) + (1.0 - decay) * new


def _root_mean_square(x):
    return tf.sqrt(tf.reduce_mean(tf.square(x)))
