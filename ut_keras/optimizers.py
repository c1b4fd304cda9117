"""The optimizer that a set of hyperparameters describes."""

import keras

from ut_keras import schedules


def from_hparams(hparams):
    """Returns an unbuilt Keras optimizer: Adam with tensor2tensor's schedule.

    Keras' Adam is tensor2tensor's: w -= rate * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon),
    with the rate taken at the step number before the update. Gradients are not clipped here: what is
    to be clipped is the sum over replicas, which an optimizer does not see (`trainer.step` does it).
    `weight_decay` is decoupled (w -= rate * weight_decay * w) and spares vectors: biases and norms.

    Args:
        hparams: an `HParams`.

    Example:

    >>> from ut_keras.hparams import HParams
    >>> from_hparams(HParams()).beta_2
    0.997
    """
    optimizer = keras.optimizers.Adam(
        learning_rate=schedules.from_hparams(hparams),
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        weight_decay=hparams.weight_decay or None,
    )
    if hparams.weight_decay:
        optimizer.exclude_from_weight_decay(var_names=["bias", "scale", "gamma", "beta"])
    return optimizer
