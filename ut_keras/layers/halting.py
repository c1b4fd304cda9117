"""Adaptive computation time (ACT): how often each position is refined.

Legend: B batch, L length, D hidden size, T steps. The accounting is a pure function in float32; the layer
holds the halting unit and says which form does what.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from ut_keras.layers.choices import one_of
from ut_keras.layers.noise import uniform

FORMS = ("basic", "accumulated", "global", "random", "frozen")
_WEIGHTED_SUM = ("accumulated", "frozen")


class Ponder(NamedTuple):
    """What a recurrence says of its halting.

    Attributes:
        ponder_times: [B, L] float32, steps taken by each position.
        remainders: [B, L] float32, what was left to 1 when the position halted.
        halting_probability: [T, B, L] float32, accumulated after each step; 1 where a position has halted.
        weights: [B, L] float32, 1 where a position counts in means (real positions), else 0.
    """

    ponder_times: Any
    remainders: Any
    halting_probability: Any
    weights: Any


class HaltingState(NamedTuple):
    """Loop state of ACT, each [B, L] float32: accumulated probability, remainder and steps so far."""

    probability: Any
    remainders: Any
    ponder_times: Any


def halting_step(state, probability, threshold, pay):
    """One step of ACT's accounting (Graves 2016, section 2; paper appendix C).

    Args:
        state: HaltingState before the step. A position runs while its probability is < 1.
        probability: [B, L] float32, this step's halting probability.
        threshold: float, 1 - epsilon; a position halts in the step in which its sum reaches it.
        pay: scalar bool: positions that still run halt now and get their remainder (the step limit).

    Returns:
        (HaltingState after the step, [B, L] float32 weight of this step's new state in the output,
        [B, L] bool of the positions that ran in this step).
    """
    running = state.probability < 1.0
    total = state.probability + probability
    halts = running & ((total >= threshold) | pay)
    goes_on = running & ~halts
    remainder = 1.0 - state.probability
    weight = tf.where(halts, remainder, tf.where(goes_on, probability, 0.0))
    after = HaltingState(
        probability=tf.where(halts, 1.0, tf.where(goes_on, total, state.probability)),
        remainders=tf.where(halts, remainder, state.remainders),
        ponder_times=state.ponder_times + tf.cast(running, tf.float32),
    )
    return after, weight, running


@keras.saving.register_keras_serializable("ut_keras")
class AdaptiveComputationTime(keras.layers.Layer):
    """The halting plug-in of the recurrence: a sigmoid unit per position, and what becomes of its outcome.

    | form | probability | output | a halted position's state |
    |---|---|---|---|
    | `basic` | its own unit | y <- u z + (1 - u) y (paper appendix C, T2T) | goes on changing |
    | `accumulated` | its own unit | y <- y + u z (Graves) | goes on changing |
    | `global` | mean of the units over the sequence (decoder: over the prefix) | as `basic` | goes on changing |
    | `random` | uniform noise | as `basic` | goes on changing |
    | `frozen` | its own unit | as `accumulated` | stays as it was when the position halted (paper section 2.2) |

    z is the new state and u the step's weight: the probability, or the remainder in the step that halts.

    Args:
        form: see above.
        epsilon: a position halts when its sum of probabilities reaches 1 - epsilon.
        bias_initializer: initial bias of the unit; 1.0 (T2T) halts an untrained model at its second step, -3 late.
        remainder_at_limit: `accumulated` and `frozen` pay the remainder at the step limit, so that their weights
            sum to 1. `basic`, `global` and `random` never do, as in T2T.
        count_padding: padding halts like any position, prolongs the loop and counts in means, as in T2T. By
            default it never runs.
        global_over: "prefix" (causal) or "all" (T2T): the mean of `global` in a causal recurrence.

    Example:

    >>> act = AdaptiveComputationTime("accumulated", epsilon=0.05)
    >>> act.get_config()["epsilon"]
    0.05

    Source: Graves 2016 (arXiv 1603.08983); paper section 2.2 and appendix C; T2T universal_transformer_util.py.
    """

    def __init__(
        self,
        form="basic",
        epsilon=0.01,
        bias_initializer=1.0,
        remainder_at_limit=True,
        count_padding=False,
        global_over="prefix",
        **kwargs,
    ):
        kwargs["dtype"] = "float32"
        super().__init__(**kwargs)
        if form not in FORMS:
            raise ValueError(f"halting form {form!r} is not one of none, {', '.join(FORMS)}")
        one_of("global_over", global_over, ("prefix", "all"))
        self.form = form
        self.epsilon = epsilon
        self.bias_initializer = bias_initializer
        self.remainder_at_limit = remainder_at_limit
        self.count_padding = count_padding
        self.global_over = global_over

    def build(self, shape):
        self._kernel = self._bias = None
        if self.form != "random":
            # Read in float32 under every policy: a sum in bfloat16 sticks below the threshold.
            self._kernel = self.add_weight(
                name="kernel", shape=(shape[-1], 1), initializer="glorot_uniform", autocast=False
            )
            bias = keras.initializers.Constant(self.bias_initializer)
            self._bias = self.add_weight(name="bias", shape=(1,), initializer=bias, autocast=False)
        self.built = True

    def prepare(self):
        """Returns the unit's weights as tensors; an empty list for `random`."""
        return [] if self._kernel is None else [tf.convert_to_tensor(w) for w in (self._kernel, self._bias)]

    def counted(self, padding_mask):
        """Returns which positions take part at all, [B, L] bool."""
        return tf.ones_like(padding_mask) if self.count_padding else padding_mask

    def initial_state(self, padding_mask):
        """Returns the HaltingState before the first step: positions that do not take part have halted."""
        zeros = tf.zeros(tf.shape(padding_mask), tf.float32)
        return HaltingState(tf.where(self.counted(padding_mask), 0.0, 1.0), zeros, zeros)

    def probability(self, state, context, padding_mask, causal, seed, step, view=None, packed=None):
        """Returns this step's halting probability, [B, L] float32.

        Args:
            state: [B, L, D], the state with its signals, before the block.
            context: what `prepare` returned.
            padding_mask: [B, L] bool.
            causal: Python bool, whether the recurrence is a decoder's.
            seed: [2] int32, for `random`; None: the same noise for every row, so that no row depends on another.
            step: scalar int32.
            view: `cache.CacheView` of the positions before, where only new ones are computed.
            packed: `packing.PackedRows`, where state and mask hold real positions alone, [N, 1].
        """
        shape = tf.shape(padding_mask)
        if self.form == "random":
            if seed is not None:
                return tf.random.stateless_uniform(shape, seed)
            indices = tf.range(shape[1]) if view is None else view.places.indices
            indices = indices[None, :] if packed is None else packed.places[:, 1:]
            return tf.broadcast_to(uniform(int(causal), indices, step), shape)
        kernel, bias = context
        flat = tf.cast(tf.reshape(state, [-1, kernel.shape[0]]), tf.float32)
        own = tf.reshape(tf.sigmoid(tf.matmul(flat, kernel) + bias), shape)
        if self.form != "global":
            return own
        if packed is None:
            return self._mean(own, self.counted(padding_mask), causal, view)
        whole, counted = (packed.unpack(value[..., None])[..., 0] for value in (own, padding_mask))
        return packed.pack(self._mean(whole, counted & packed.mask, causal)[..., None])[..., 0]

    def _mean(self, own, counted, causal, view=None):
        """own: [B, L] float32, counted: [B, L] bool; returns [B, L], the mean over the sequence or the prefix."""
        counted = tf.cast(counted, tf.float32)
        if view is not None:
            total = view.running_sums("probabilities", own * counted)
            count = view.running_sums("counts", counted)
        elif causal and self.global_over == "prefix":
            total, count = tf.cumsum(own * counted, axis=1), tf.cumsum(counted, axis=1)
        else:
            total = tf.reduce_sum(own * counted, axis=1, keepdims=True)
            count = tf.reduce_sum(counted, axis=1, keepdims=True)
        return tf.broadcast_to(tf.math.divide_no_nan(total, count), tf.shape(own))

    def running_sums(self):
        """Returns the names of the sums over earlier positions that a cache keeps."""
        return ("probabilities", "counts") if self.form == "global" else ()

    def step(self, state, probability, at_limit):
        """Returns `halting_step` of this form; `at_limit` is a scalar bool, True in the last step there is."""
        pays = self.form in _WEIGHTED_SUM and self.remainder_at_limit
        return halting_step(state, probability, 1.0 - self.epsilon, at_limit if pays else False)

    def runs_on(self, state):
        """Returns whether any position has not reached the threshold yet: a scalar bool."""
        return tf.reduce_any(state.probability < 1.0 - self.epsilon)

    def mix(self, output, new, weight):
        """Returns the output [B, L, D] after a step with the new state [B, L, D] and its weight [B, L]."""
        weight = tf.cast(weight, new.dtype)[..., None]
        return output + weight * new if self.form in _WEIGHTED_SUM else weight * new + (1.0 - weight) * output

    def keep(self, old, new, running):
        """Returns the state that the next step starts from; `running` [B, L] bool as `halting_step` says."""
        return tf.where(running[..., None], new, old) if self.form == "frozen" else new

    def call(self, state, padding_mask):
        """Returns the halting probabilities [B, L] of a first step, for looking at the unit by itself."""
        return self.probability(state, self.prepare(), padding_mask, False, None, tf.constant(0))

    def get_config(self):
        names = ("form", "epsilon", "bias_initializer", "remainder_at_limit", "count_padding", "global_over")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def make_halting(halting):
    """Returns a new halting layer, or None for none.

    Args:
        halting: "none" or None, a form's name, a layer or its serialised form. A layer says how to halt and is not
            used itself: each recurrence has a unit of its own.
    """
    if halting in (None, "none"):
        return None
    if isinstance(halting, str):
        return AdaptiveComputationTime(halting)
    config = halting if isinstance(halting, dict) else keras.saving.serialize_keras_object(halting)
    return keras.saving.deserialize_keras_object({**config, "build_config": None})
