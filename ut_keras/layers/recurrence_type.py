"""What a step does with the state: the base of the recurrence types, and the plainest of them.

Legend: B batch, L length, D hidden size, T steps.
"""

import collections.abc
import importlib

import keras

from ut_keras.layers.choices import one_of
from ut_keras.layers.normalization import LayerNorm

TYPES = {
    "basic": "recurrence_type:Basic",
    "highway": "highway:Highway",
    "skip": "highway:Skip",
    "dwa": "depthwise_attention:DepthwiseAttention",
    "rnn": "rnn:Rnn",
    "gru": "gru:Gru",
    "lstm": "lstm_cell:Lstm",
}


class RecurrenceType(keras.layers.Layer):
    """Base of the recurrence types: what the loop over depth carries, and how a step changes it.

    The loop calls `begin` once; then, at every step, gives the blocks what `read` returns, with the signals, and hands
    their output to `step`. All tensors of the carry and of the constants are position-wise, [B, L, ...], so that a
    cache, packed rows and every halting go with every type.

    Args:
        max_steps: T, the most steps there are.
        norm, norm_epsilon, filter_size, relu_dropout: as of `Block`; with "pre" a type norms what it reads and gives.

    Attributes:
        transition: whether the blocks have their own transition in this type.
    """

    transition = True

    def __init__(self, max_steps=6, norm="post", norm_epsilon=1e-6, filter_size=2048, relu_dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.max_steps = max_steps
        self.norm = norm
        self.norm_epsilon = norm_epsilon
        self.filter_size = filter_size
        self.relu_dropout = relu_dropout

    def build(self, shape):
        self.built = True

    def make_norms(self, *names):
        """Returns a `LayerNorm` of each name; [] for post-norm, whose blocks give normed states."""
        norms = names if self.norm == "pre" else ()
        return [LayerNorm(self.norm_epsilon, name=name, dtype=self.dtype_policy) for name in norms]

    def prepare(self, steps):
        """Returns the weights as tensors, a nest; `steps` is T of the call. ValueError where it is too deep."""
        return []

    def all_gates(self):
        """Returns the type's `Gates`, a list."""
        return []

    def begin(self, x, weights, real=None, seed=None):
        """Returns (the carry before the first step, what no step changes), nests of [B, L, ...] tensors.

        Args:
            x: [B, L, D], the input of the recurrence.
            weights: what `prepare` returned.
            real: [B, L, 1], 0 where a dense layer of the type gives 0 (T2T's pad remover), or None.
            seed: [2] int32 for the dropouts, or None.
        """
        return x, []

    def read(self, carry):
        """Returns what a step puts its signals on and its blocks refine, [B, L, D]."""
        return self.output(carry)

    def step(self, carry, new, step, weights, constants, real=None, seed=None):
        """Returns the carry after a step (scalar int32, from 0) whose blocks gave `new` [B, L, D]."""
        return new

    def output(self, carry):
        """Returns the state [B, L, D]."""
        return carry

    def result(self, carry):
        """Returns what the recurrence gives when this is its last step, [B, L, D]."""
        return self.output(carry)


class Basic(RecurrenceType):
    """The new state is what the blocks make of the old one (paper section 2.1; T2T "basic", and "act")."""


def make_type(recurrence, **shared):
    """Returns a new `RecurrenceType`.

    Args:
        recurrence: a type's name, or {"type": name, **its own arguments}.
        **shared: arguments of `RecurrenceType`, and of `keras.layers.Layer`.

    Raises:
        ValueError: it is neither, or there is no such type.
    """
    options = {"type": recurrence} if isinstance(recurrence, str) else recurrence
    if not isinstance(options, collections.abc.Mapping) or "type" not in options:
        raise ValueError(f'recurrence={recurrence!r} is neither a type\'s name nor {{"type": name, argument: value}}')
    options = dict(options)
    module, name = TYPES[one_of("recurrence type", options.pop("type"), tuple(TYPES))].split(":")
    return getattr(importlib.import_module(f"ut_keras.layers.{module}"), name)(**options, **shared)
