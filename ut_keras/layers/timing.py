"""The coordinate signal of a recurrence: position and step, added or concatenated at every step.

Legend: B batch, L length, D hidden size, T steps.
"""

import keras
import tensorflow as tf

from ut_keras.layers.choices import one_of
from ut_keras.layers.projection import project
from ut_keras.layers.signals import LAYOUTS, sinusoids, step_shift


@keras.saving.register_keras_serializable("ut_keras")
class TimingSignal(keras.layers.Layer):
    """Puts the position's and the step's signal into the state, as the recurrence does at the start of each step.

    Args:
        max_steps: T; with a learned step signal, the rows of its table.
        layout: "paper" or "t2t", see `signals.sinusoids`.
        position: whether there is a position signal.
        step: "sinusoid" (the paper), "learned" (T2T) or "none".
        combine: "add", or "concat": state | position | step, projected back to D without bias (T2T).
        shift_by_step: start index "step": positions move by floor(length * step / T) (T2T).

    Call arguments:
        x: [B, L, D] float.
        step: scalar int32, from 0.
        positions: [B or 1, L] int32, from 0.
        lengths: [B or 1] int32, the lengths that `shift_by_step` measures in.
        steps: T of this call.

    Returns:
        [B, L, D].

    Raises:
        ValueError: more steps than a learned table has.

    Example:

    >>> signal = TimingSignal(max_steps=4)
    >>> signal(tf.zeros([1, 3, 4]), tf.constant(0), tf.range(3)[None]).shape.as_list()
    [1, 3, 4]

    Source: paper eq. 6-7; T2T universal_transformer_util.py (step_preprocess, add_step_timing_signal).
    """

    def __init__(
        self, max_steps, layout="paper", position=True, step="sinusoid", combine="add", shift_by_step=False, **kwargs
    ):
        super().__init__(**kwargs)
        for name, value, choices in (
            ("layout", layout, LAYOUTS),
            ("step", step, ("sinusoid", "learned", "none")),
            ("combine", combine, ("add", "concat")),
        ):
            one_of(f"signal {name}", value, choices)
        self.max_steps = max_steps
        self.layout = layout
        self.position = position
        self.step = step
        self.combine = combine
        self.shift_by_step = shift_by_step

    def build(self, shape):
        size = shape[-1]
        self._size = size
        width = size * (1 + self.position) if self.combine == "concat" else size
        self._table = self._projection = None
        if self.step == "learned":
            normal = keras.initializers.RandomNormal(stddev=width**-0.5)
            self._table = self.add_weight(name="layer_embedding", shape=(self.max_steps, width), initializer=normal)
        if self.combine == "concat" and (self.position or self.step != "none"):
            rows = width * (1 + (self.step != "none"))
            self._projection = self.add_weight(name="projection", shape=(rows, size), initializer="glorot_uniform")
        self._width = width
        self.built = True

    def prepare(self, positions, lengths=None, steps=None):
        """Returns what no step changes: the position signal, the step table [T, ...] and the projection."""
        return self.at(self.prepare_apart(steps), positions, lengths)

    def prepare_apart(self, steps=None):
        """Returns the same without what depends on positions, which `at` adds."""
        steps = self.max_steps if steps is None else steps
        if self.step == "learned" and steps > self.max_steps:
            raise ValueError(
                f"max_steps={steps}: the learned step signal has {self.max_steps} rows; "
                "a model with step='sinusoid' can run deeper than it was trained"
            )
        context = {"steps": tf.constant(steps)}
        if self.step == "learned":
            context["table"] = tf.cast(tf.convert_to_tensor(self._table) * self._width**0.5, self.compute_dtype)
        elif self.step == "sinusoid":
            context["table"] = tf.cast(sinusoids(tf.range(steps), self._width, self.layout), self.compute_dtype)
        if self._projection is not None:
            context["projection"] = tf.cast(tf.convert_to_tensor(self._projection), self.compute_dtype)
        return context

    def at(self, context, positions, lengths=None):
        """Returns a context of `prepare_apart` for positions [B or 1, L] and lengths [B or 1]."""
        context = {**context, "positions": positions, "lengths": lengths}
        if self.position and not self.shift_by_step:
            context["position"] = self._position_signal(positions)
        return context

    def add_to(self, x, step, context):
        """Returns x [B, L, D] with the signals of `step`."""
        if self.position:
            signal = context.get("position")
            if signal is None:
                shift = step_shift(context["lengths"], step, context["steps"])
                signal = self._position_signal(context["positions"] + shift)
            x = self._combine(x, signal)
        if self.step != "none":
            x = self._combine(x, context["table"][step][None, None, :])
        if "projection" in context:
            x = project(x, context["projection"])
        return x

    def call(self, x, step, positions, lengths=None, steps=None):
        return self.add_to(x, step, self.prepare(positions, lengths, steps))

    def _position_signal(self, positions):
        return tf.cast(sinusoids(positions, self._size, self.layout), self.compute_dtype)

    def _combine(self, x, signal):
        if self.combine == "add":
            return x + signal
        shape = tf.concat([tf.shape(x)[:2], [signal.shape[-1]]], 0)
        return tf.concat([x, tf.broadcast_to(signal, shape)], axis=-1)

    def get_config(self):
        names = ("max_steps", "layout", "position", "step", "combine", "shift_by_step")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
