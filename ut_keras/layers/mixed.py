"""Plain blocks before and behind a recurrence.

Legend: B batch, L length, D hidden size, T steps, N blocks of a group.
"""

import inspect
import itertools

import keras
import tensorflow as tf

from ut_keras.layers.choices import each_once
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.normalization import LayerNorm
from ut_keras.layers.recurrence import UniversalRecurrence
from ut_keras.layers.stack import BlockStack

GROUPS = ("before_ut", "after_ut")
# All other arguments of a recurrence are its block's.
_OF_THE_RECURRENCE = frozenset(inspect.signature(UniversalRecurrence.__init__).parameters)


def recurrent_body(mix=None, **arguments):
    """Returns the body that a Universal Transformer's arguments ask for.

    Args:
        mix: None for a `UniversalRecurrence`, or as `MixedRecurrence`.
        **arguments: those of the one or the other.
    """
    if mix is None:
        arguments.pop("num_mixedin_layers", None)
        return UniversalRecurrence(**arguments)
    return MixedRecurrence(mix, **arguments)


@keras.saving.register_keras_serializable("ut_keras")
class MixedRecurrence(keras.layers.Layer):
    """A `UniversalRecurrence` with groups of different blocks, each applied once, before it, behind it or both.

    The blocks are like those of the recurrence (with the transition where the recurrence type has one of its own),
    and a group begins with the position signal where there is one: added, never concatenated, and not shifted by steps.
    Input dropout comes before everything, and pre-norm's closing norm behind everything. Whatever has to do with
    steps, halting and ponder times is the recurrence's.

    Args:
        mix: "before_ut", "after_ut", or both with a comma between them.
        num_mixedin_layers: N, blocks of each group.
        signal, input_dropout, remat, transition, norm, norm_epsilon: as `UniversalRecurrence`, for all parts.
        **recurrence: further arguments of `UniversalRecurrence`; those of its block are for the groups as well.

    Call arguments:
        x, padding_mask, positions, lengths, memory, memory_mask, seed: as `UniversalRecurrence`.
        max_steps: steps of the recurrence in this call; the groups keep their depth.
        trace: also return the recurrence's traces, and "pre_final_norm" [B, L, D], the last group's output.

    Returns:
        ([B, L, D] output, the recurrence's Ponder), and the traces where asked for.

    Raises:
        ValueError: `mix` names anything but these groups.

    Example:

    >>> layer = MixedRecurrence("before_ut,after_ut", num_mixedin_layers=1, max_steps=3, num_heads=2, filter_size=8)
    >>> output, ponder = layer(tf.ones([1, 3, 4]), tf.constant([[True, True, False]]))
    >>> output.shape.as_list(), ponder.ponder_times.numpy().tolist()
    ([1, 3, 4], [[3.0, 3.0, 0.0]])

    Source: T2T universal_transformer_util.py (mix_with_transformer).
    """

    def __init__(
        self,
        mix,
        num_mixedin_layers=2,
        signal=None,
        input_dropout=0.0,
        remat=False,
        transition="fc",
        norm="post",
        norm_epsilon=1e-6,
        name=None,
        dtype=None,
        trainable=True,
        **recurrence,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        groups = groups_of(mix)
        if num_mixedin_layers < 1:
            raise ValueError(f"num_mixedin_layers={num_mixedin_layers}: mix={mix!r} puts at least one block there")
        self.mix = mix
        self.num_mixedin_layers = num_mixedin_layers
        self.input_dropout = input_dropout
        self.transition = transition
        policy = self.dtype_policy
        shared = {"remat": remat, "transition": transition, "norm": norm, "norm_epsilon": norm_epsilon}
        shared |= {"closing_norm": False, "dtype": policy}
        self.recurrence = UniversalRecurrence(signal=signal, name="recurrence", **shared, **recurrence)
        block = {name: value for name, value in recurrence.items() if name not in _OF_THE_RECURRENCE}
        once = {name: value for name, value in (signal or {}).items() if name in ("layout", "position")}

        def make_group(name):
            return BlockStack(num_mixedin_layers, once, name=name, **shared, **block) if name in groups else None

        self.before, self.after = map(make_group, GROUPS)
        self.final_norm = LayerNorm(norm_epsilon, name="norm", dtype=policy) if norm == "pre" else None
        self.causal = self.recurrence.causal
        # In a shared cache the groups come first: their places do not depend on the steps of a call.
        for place, part in enumerate(self._cached):
            part.first_entry = place * num_mixedin_layers

    @property
    def _parts(self):
        """The parts in the order of the computation."""
        return [part for part in (self.before, self.recurrence, self.after) if part is not None]

    @property
    def _cached(self):
        """The parts in the order of their entries in the cache."""
        return [part for part in (self.before, self.after, self.recurrence) if part is not None]

    @property
    def halting(self):
        """The recurrence's halting unit, or None."""
        return self.recurrence.halting

    @property
    def timing(self):
        """The signals of the recurrence's steps."""
        return self.recurrence.timing

    @property
    def max_steps(self):
        """T, the recurrence's."""
        return self.recurrence.max_steps

    def build(self, shape):
        for layer in (*self._parts, self.final_norm):
            if layer is not None:
                layer.build(shape)
        self.built = True

    def call(
        self,
        x,
        padding_mask,
        positions=None,
        lengths=None,
        memory=None,
        memory_mask=None,
        seed=None,
        max_steps=None,
        trace=False,
    ):
        x = dropout(x, self.input_dropout, fold_seed(seed, -1))
        ponder, traces = (), {}
        for index, part in enumerate(self._parts):
            repeated = part is self.recurrence
            x, *found = part(
                x,
                padding_mask,
                positions=positions,
                lengths=lengths,
                memory=memory,
                memory_mask=memory_mask,
                seed=fold_seed(seed, index),
                max_steps=max_steps if repeated else None,
                trace=trace and repeated,
            )
            if repeated:
                ponder, *traces = found
        output = self.finish(x)
        return (output, ponder, {**traces[0], "pre_final_norm": x}) if trace else (output, ponder)

    def finish(self, x):
        """Returns x [B, L, D] after the closing norm, which only pre-norm has."""
        return x if self.final_norm is None else self.final_norm.normalize(x, self.final_norm.prepare())

    def depth(self, max_steps=None):
        """Returns the recurrence's T of a call; `max_steps` None: its own."""
        return self.recurrence.depth(max_steps)

    def prepare_decoding(self, memory=None, memory_mask=None, steps=None):
        """Returns what no position changes; as `Body.prepare_decoding`, with the blocks of all parts as one list."""
        return _join(
            part.prepare_decoding(memory, memory_mask, steps if part is self.recurrence else None)
            for part in self._parts
        )

    def at(self, context, places, lengths):
        """Returns a context of `prepare_decoding` at some `cache.Places`; lengths: [B or 1] int32."""
        return _join(part.at(own, places, lengths) for part, own in self._split(context))

    def cache_layout(self, steps):
        """Returns the `cache.CacheLayout` of all parts, the recurrence with so many steps."""
        layouts = [part.cache_layout(depth) for part, depth in self._depths(steps)]
        return layouts[0]._replace(entries=sum(layout.entries for layout in layouts))

    def empty_cache(self, batch, capacity, steps):
        """Returns a cache for one hypothesis that knows no position, {name: tensor}; see `layers.cache`."""
        kept = {}
        for part, depth in self._depths(steps):
            for name, tensor in part.empty_cache(batch, capacity, depth).items():
                kept.setdefault(name, []).append(tensor)
        return {name: tf.concat(tensors, axis=0) for name, tensors in kept.items()}

    def advance(self, x, running, context, tensors, places, steps):
        """Computes new positions behind those that a cache knows; as `UniversalRecurrence.advance`."""
        times = None
        for part, own in self._split(context):
            x, taken, tensors = part.advance(x, running, own, tensors, places, steps)
            times = taken if part is self.recurrence else times
        return self.finish(x), times, tensors

    def _depths(self, steps):
        return [(part, steps if part is self.recurrence else self.num_mixedin_layers) for part in self._cached]

    def _split(self, context):
        """Returns each part with its context, of what `_join` returned."""
        blocks = iter(context["blocks"])
        return [
            (part, {**own, "blocks": list(itertools.islice(blocks, len(part.blocks)))})
            for part, own in zip(self._parts, context["parts"], strict=True)
        ]

    def get_config(self):
        own = {name: getattr(self, name) for name in ("mix", "num_mixedin_layers", "input_dropout", "transition")}
        recurrence = self.recurrence.get_config()
        del recurrence["closing_norm"]
        return {**recurrence, **super().get_config(), **own}


def groups_of(mix):
    """Returns the names of the groups in `mix`; ValueError where it names others."""
    groups = mix.split(",")
    if not each_once(groups, GROUPS):
        raise ValueError(f"mix={mix!r} is not 'before_ut', 'after_ut' or 'before_ut,after_ut'")
    return groups


def _join(contexts):
    """Returns one context of several: those who decode know the blocks' memory, and nothing of parts."""
    contexts = [dict(context) for context in contexts]
    return {"blocks": [block for context in contexts for block in context.pop("blocks")], "parts": contexts}
