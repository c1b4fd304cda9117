"""The optimizer that a set of hyperparameters describes, and the parts of its state."""

import keras

from ut_keras import schedules
from ut_keras.adafactor import Adafactor
from ut_keras.loss_scale import BoundedLossScaleOptimizer


def from_hparams(hparams, ema_decay=0.0):
    """Returns an unbuilt Keras optimizer with tensor2tensor's schedule: Adam, Adafactor, momentum or plain SGD.

    Keras' Adam is tensor2tensor's: w -= rate * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon),
    with the rate taken at the step number before the update. Gradients are not clipped here: what is
    to be clipped is the sum over replicas, which an optimizer does not see (`trainer.step` does it).
    `weight_decay` is decoupled (w -= rate * weight_decay * w) and spares vectors: biases and norms.

    With `ema_decay` the optimizer keeps an average of every weight, a = ema_decay * a + (1 - ema_decay) * w
    after each update; the first update makes it the weights themselves. The weights never take its values.

    Args:
        hparams: an `HParams`.
        ema_decay: decay of the exponential moving averages per update, below 1; 0 keeps none.

    Example:

    >>> from ut_keras.hparams import HParams
    >>> from_hparams(HParams()).beta_2
    0.997
    """
    common = {
        "learning_rate": schedules.from_hparams(hparams),
        "weight_decay": hparams.weight_decay or None,
        "use_ema": bool(ema_decay),
        "ema_momentum": ema_decay or 0.99,  # Keras wants a number, also where it keeps no averages
    }
    optimizer = _MAKERS[hparams.optimizer](hparams, common)
    if hparams.weight_decay:
        optimizer.exclude_from_weight_decay(var_names=["bias", "scale", "gamma", "beta"])
    return optimizer


def guarded(optimizer, mixed_float16=False, on_nan="stop"):
    """Returns `optimizer`, wrapped where gradients that are not finite must not reach it.

    A skipped update changes neither weights nor slots nor averages, and `iterations` stays: the learning rate is
    a function of the updates that were made, not of the batches that were seen. Under a strategy the gradients
    must be the same on every replica, as after an all-reduce: one replica's are looked at.

    Args:
        optimizer: unbuilt.
        mixed_float16: float16 gradients underflow, so the loss is scaled by a factor that follows them (from 2^15,
            between 1 and 2^24), whatever `on_nan`; a step that overflows is skipped.
        on_nan: "skip": an update with a gradient that is not finite is left out, in every precision. "stop": it is not.
    """
    if mixed_float16:
        return BoundedLossScaleOptimizer(optimizer)
    if on_nan == "skip":
        return BoundedLossScaleOptimizer(optimizer, initial_scale=1.0, maximum_scale=1.0)
    return optimizer


def averages(optimizer):
    """Returns the moving averages of a built optimizer in the order of the trainable variables; None: it keeps none."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return list(inner._model_variables_moving_average) if inner.use_ema else None


def slots(optimizer):
    """Returns the other variables that training goes on from: the number of updates, then the moments."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    averaged = {id(variable) for variable in averages(optimizer) or ()}
    return [variable for variable in inner.variables if id(variable) not in averaged]


def loss_scale_state(optimizer):
    """Returns the variables of a loss scale that moves: finite steps since it last did, the scale; else []."""
    moves = hasattr(optimizer, "dynamic_scale") and getattr(optimizer, "moves", True)
    return [optimizer.step_counter, optimizer.dynamic_scale] if moves else []


def _adam(hparams, common):
    return keras.optimizers.Adam(
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        **common,
    )


def _adafactor(hparams, common):
    return Adafactor(
        beta_1=hparams.optimizer_adafactor_beta1,
        beta_2=hparams.optimizer_adafactor_beta2,
        decay_type=hparams.optimizer_adafactor_decay_type,
        memory_exponent=hparams.optimizer_adafactor_memory_exponent,
        factored=hparams.optimizer_adafactor_factored,
        clipping_threshold=hparams.optimizer_adafactor_clipping_threshold,
        multiply_by_parameter_scale=hparams.optimizer_adafactor_multiply_by_parameter_scale,
        **common,
    )


def _momentum(hparams, common):
    return keras.optimizers.SGD(
        momentum=hparams.optimizer_momentum_momentum, nesterov=hparams.optimizer_momentum_nesterov, **common
    )


def _sgd(hparams, common):
    return keras.optimizers.SGD(**common)


_MAKERS = {"adam": _adam, "adafactor": _adafactor, "momentum": _momentum, "sgd": _sgd}
