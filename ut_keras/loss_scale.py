"""Loss scaling that can neither sink to 0 nor grow to infinity."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="ut_keras")
class BoundedLossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras' loss scale optimizer with a least and a largest scale.

    The loss is multiplied by the scale (`scale_loss`), the gradients that `apply` gets are divided by it. An
    update with a gradient that is not finite is skipped and halves the scale; `dynamic_growth_steps` finite ones
    in a row double it. Keras' own scale has no bounds: gradients that are NaN at any scale bring it to 0, and those
    that never overflow bring it to infinity; from either no gradient is finite again. With `minimum_scale` and
    `maximum_scale` both 1 the gradients pass unchanged to the bit, and only the skipping is left.

    Args:
        inner_optimizer: unbuilt optimizer that makes the updates.
        initial_scale: scale before the first update, within the bounds.
        dynamic_growth_steps: finite updates in a row after which the scale doubles.
        minimum_scale, maximum_scale: its bounds, powers of 2, so that scaling changes no digit.

    Example:

    >>> optimizer = BoundedLossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=1.0, maximum_scale=1.0)
    >>> weight = keras.Variable([1.0])
    >>> optimizer.apply([tf.constant([float("nan")])], [weight])
    >>> float(weight[0]), float(optimizer.dynamic_scale)
    (1.0, 1.0)
    """

    def __init__(
        self,
        inner_optimizer,
        initial_scale=2.0**15,
        dynamic_growth_steps=2000,
        minimum_scale=1.0,
        maximum_scale=2.0**24,
        name=None,
        **kwargs,
    ):
        super().__init__(inner_optimizer, initial_scale, dynamic_growth_steps, name, **kwargs)
        self.minimum_scale = minimum_scale
        self.maximum_scale = maximum_scale

    @property
    def moves(self):
        """Whether the scale can change."""
        return self.minimum_scale < self.maximum_scale

    def _stateful_handle_finite_grads(self, grads, trainable_variables):
        super()._stateful_handle_finite_grads(grads, trainable_variables)
        self.dynamic_scale.assign(tf.minimum(self.dynamic_scale.value, self.maximum_scale))

    def _stateful_handle_non_finite_grads(self):
        super()._stateful_handle_non_finite_grads()
        self.dynamic_scale.assign(tf.maximum(self.dynamic_scale.value, self.minimum_scale))

    def get_config(self):
        return {**super().get_config(), "minimum_scale": self.minimum_scale, "maximum_scale": self.maximum_scale}
