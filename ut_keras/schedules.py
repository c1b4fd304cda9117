"""tensor2tensor's learning-rate schedules: a product of named factors of the step number."""

import dataclasses
import math

import keras
import tensorflow as tf

from ut_keras.errors import UsageError
from ut_keras.registry import near_names

_DEFAULT = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"


@keras.saving.register_keras_serializable(package="ut_keras")
class LearningRateSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate as a product of factors, as in tensor2tensor's utils/learning_rate.py.

    With s the step number *before* the update (the first update has s = 0), w the warm-up steps,
    N the decay steps and D the hidden size, the factors are

        constant                learning_rate_constant
        linear_warmup           min(1, s / w)
        rsqrt_decay             max(s, w)^-0.5
        rsqrt_normalized_decay  (w / max(s, w))^0.5
        rsqrt_hidden_size       D^-0.5
        linear_decay            (train_steps - s) / min(N, train_steps - w), cut to [0, 1]: T2T's, but for the
                                minimum, without which a short run would never reach its rate
        exp_decay               learning_rate_decay_rate^(max(0, s - w) / N); staircase: the exponent rounded down
        cosdecay                1 until w, then (1 + cos(pi s / N)) / 2
        single_cycle_cos_decay  (1 + cos(pi max(0, s - w) / (train_steps - w))) / 2
        multi_cycle_cos_decay   (1 + cos(pi max(0, s - w) / N)) / 2
        legacy                  5000 D^-0.5 min((s + 1) w^-1.5, (s + 1)^-0.5) learning_rate, times 0.002
                                if the optimizer's name holds "adam" (noam)

    A warm-up of 0 steps counts as none in linear_warmup and as 1 elsewhere, so that every rate is finite.

    Args:
        learning_rate_schedule: names of factors, joined by *.
        hidden_size: width D of the model.
        learning_rate_constant, learning_rate_warmup_steps, learning_rate_decay_steps,
        learning_rate_decay_rate, learning_rate_decay_staircase, train_steps, learning_rate, optimizer:
            what the formulas above read; steps are training steps. Defaults are tensor2tensor's.

    Call arguments:
        step: scalar, Python number or tensor of any integer or float type.

    Returns:
        A float32 scalar.

    Raises:
        UsageError: an unknown factor, or one that cannot be computed from the arguments.

    Example:

    >>> schedule = LearningRateSchedule(hidden_size=512)
    >>> f"{float(schedule(8000)):.3e}"
    '9.882e-04'
    >>> LearningRateSchedule("constant*linear_warmpu")
    Traceback (most recent call last):
    ...
    ut_keras.errors.UsageError: learning_rate_schedule has no factor 'linear_warmpu'; near names: linear_warmup
    """

    def __init__(
        self,
        learning_rate_schedule=_DEFAULT,
        hidden_size=512,
        learning_rate_constant=2.0,
        learning_rate_warmup_steps=8000,
        learning_rate_decay_steps=5000,
        learning_rate_decay_rate=1.0,
        learning_rate_decay_staircase=False,
        train_steps=250000,
        learning_rate=0.2,
        optimizer="adam",
    ):
        super().__init__()
        self.learning_rate_schedule = learning_rate_schedule
        self.hidden_size = hidden_size
        self.learning_rate_constant = learning_rate_constant
        self.learning_rate_warmup_steps = learning_rate_warmup_steps
        self.learning_rate_decay_steps = learning_rate_decay_steps
        self.learning_rate_decay_rate = learning_rate_decay_rate
        self.learning_rate_decay_staircase = learning_rate_decay_staircase
        self.train_steps = train_steps
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self._factors = _parse(learning_rate_schedule)
        if "single_cycle_cos_decay" in self._factors and train_steps <= learning_rate_warmup_steps:
            raise UsageError(
                f"train_steps={train_steps} leaves single_cycle_cos_decay nothing after "
                f"learning_rate_warmup_steps={learning_rate_warmup_steps}; raise the one or lower the other"
            )
        if learning_rate_decay_steps < 1:
            raise UsageError(f"learning_rate_decay_steps={learning_rate_decay_steps} is not positive")

    def __call__(self, step):
        with tf.name_scope("learning_rate"):
            # Float32 is exact for step numbers below 2^24, and int64 has no square root.
            step = tf.cast(step, tf.float32)
            rate = tf.constant(1.0)
            for name in self._factors:
                rate *= _FACTORS[name](self, step)
            return rate

    def get_config(self):
        return {
            "learning_rate_schedule": self.learning_rate_schedule,
            "hidden_size": self.hidden_size,
            "learning_rate_constant": self.learning_rate_constant,
            "learning_rate_warmup_steps": self.learning_rate_warmup_steps,
            "learning_rate_decay_steps": self.learning_rate_decay_steps,
            "learning_rate_decay_rate": self.learning_rate_decay_rate,
            "learning_rate_decay_staircase": self.learning_rate_decay_staircase,
            "train_steps": self.train_steps,
            "learning_rate": self.learning_rate,
            "optimizer": self.optimizer,
        }


def from_hparams(hparams):
    """Returns the schedule that `hparams` (an `HParams`) describes."""
    names = LearningRateSchedule().get_config()
    values = {field.name: getattr(hparams, field.name) for field in dataclasses.fields(hparams)}
    return LearningRateSchedule(**{name: value for name, value in values.items() if name in names})


def _parse(text):
    factors = [name.strip() for name in str(text).split("*")]
    for name in factors:
        if name not in _FACTORS:
            near = near_names(name, _FACTORS) or f"; factors: {', '.join(_FACTORS)}"
            raise UsageError(f"learning_rate_schedule has no factor {name!r}{near}")
    return factors


def _constant(schedule, step):
    return schedule.learning_rate_constant


def _linear_warmup(schedule, step):
    warmup = schedule.learning_rate_warmup_steps
    return tf.minimum(1.0, step / warmup) if warmup else 1.0


def _rsqrt_decay(schedule, step):
    return tf.math.rsqrt(tf.maximum(step, _warmup(schedule)))


def _rsqrt_normalized_decay(schedule, step):
    return math.sqrt(_warmup(schedule)) * _rsqrt_decay(schedule, step)


def _rsqrt_hidden_size(schedule, step):
    return schedule.hidden_size**-0.5


def _linear_decay(schedule, step):
    after_warmup = max(schedule.train_steps - schedule.learning_rate_warmup_steps, 1)
    return tf.clip_by_value(
        (schedule.train_steps - step) / min(schedule.learning_rate_decay_steps, after_warmup), 0.0, 1.0
    )


def _exp_decay(schedule, step):
    exponent = _after_warmup(schedule, step) / schedule.learning_rate_decay_steps
    if schedule.learning_rate_decay_staircase:
        exponent = tf.floor(exponent)
    return tf.pow(float(schedule.learning_rate_decay_rate), exponent)


def _cosdecay(schedule, step):
    decayed = _half_cosine(step / schedule.learning_rate_decay_steps)
    return tf.where(step <= schedule.learning_rate_warmup_steps, 1.0, decayed)


def _single_cycle_cos_decay(schedule, step):
    steps = schedule.train_steps - schedule.learning_rate_warmup_steps
    return _half_cosine(_after_warmup(schedule, step) / steps)


def _multi_cycle_cos_decay(schedule, step):
    return _half_cosine(_after_warmup(schedule, step) / schedule.learning_rate_decay_steps)


def _legacy(schedule, step):
    warmup = _warmup(schedule)
    noam = 5000.0 * schedule.hidden_size**-0.5 * tf.minimum((step + 1) * warmup**-1.5, tf.math.rsqrt(step + 1))
    return noam * schedule.learning_rate * (0.002 if "adam" in schedule.optimizer else 1.0)


def _warmup(schedule):
    return float(max(schedule.learning_rate_warmup_steps, 1))


def _after_warmup(schedule, step):
    return tf.maximum(step - schedule.learning_rate_warmup_steps, 0.0)


def _half_cosine(fraction):
    return 0.5 + 0.5 * tf.cos(math.pi * fraction)


_FACTORS = {
    "constant": _constant,
    "linear_warmup": _linear_warmup,
    "rsqrt_decay": _rsqrt_decay,
    "rsqrt_normalized_decay": _rsqrt_normalized_decay,
    "rsqrt_hidden_size": _rsqrt_hidden_size,
    "linear_decay": _linear_decay,
    "exp_decay": _exp_decay,
    "cosdecay": _cosdecay,
    "single_cycle_cos_decay": _single_cycle_cos_decay,
    "multi_cycle_cos_decay": _multi_cycle_cos_decay,
    "legacy": _legacy,
}
