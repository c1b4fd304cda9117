"""What a recurrence and a stack of blocks have in common: signal, blocks, closing norm.

Legend: B batch, L length, D hidden size.
"""

import keras
import tensorflow as tf

from ut_keras.layers.block import Block
from ut_keras.layers.cache import CacheLayout
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.halting import make_halting
from ut_keras.layers.normalization import LayerNorm
from ut_keras.layers.timing import TimingSignal


class Body(keras.layers.Layer):
    """Base of `UniversalRecurrence` and `BlockStack`: makes and builds their layers.

    Args:
        max_steps: steps, or blocks.
        block_names: a name for each different block.
        signal: keyword arguments of `TimingSignal` (without max_steps).
        input_dropout: rate on the input.
        remat: recompute each step in the backward pass.
        block: keyword arguments of `Block`.
        halting: see `UniversalRecurrence`.
        step: kind of the step signal where it is not the user's to choose.
        closing_norm: whether there is a norm behind the last block, which pre-norm needs; False: it is somebody else's.
        **kwargs: arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        max_steps,
        block_names,
        signal,
        input_dropout,
        remat,
        block,
        halting=None,
        step=None,
        closing_norm=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.max_steps = at_least_one(max_steps)
        self.signal = dict(signal or {})
        self.input_dropout = input_dropout
        self.remat = remat
        self._block = block
        policy = self.dtype_policy
        self.halting = make_halting(halting)
        fixed = {} if step is None else {"step": step}
        self.timing = TimingSignal(max_steps, name="timing", dtype=policy, **fixed, **self.signal)
        self.blocks = [Block(name=block_name, dtype=policy, **block) for block_name in block_names]
        self.causal = self.blocks[0].causal
        self.closing_norm = closing_norm
        self.final_norm = None
        if closing_norm and self.blocks[0].norm == "pre":
            self.final_norm = LayerNorm(block.get("norm_epsilon", 1e-6), name="norm", dtype=policy)
        self.first_entry = 0  # of its entries in a cache that it shares with others

    def build(self, shape):
        shape = (None, None, shape[-1])
        for layer in (self.halting, self.timing, *self.blocks, self.final_norm):
            if layer is not None:
                layer.build(shape)
        self.built = True

    def drop_input(self, x, seed):
        """Returns x [B, L, D] after the input dropout."""
        return dropout(x, self.input_dropout, fold_seed(seed, -1))

    def finish(self, x):
        """Returns x [B, L, D] after the closing norm, which only pre-norm has."""
        return x if self.final_norm is None else self.final_norm.normalize(x, self.final_norm.prepare())

    def depth(self, max_steps=None):
        """Returns T of a call; `max_steps` None: the layer's own. A stack of different blocks overrides it."""
        return self.max_steps if max_steps is None else at_least_one(max_steps)

    def prepare_decoding(self, memory=None, memory_mask=None, steps=None):
        """Returns what no position changes, for decoding with a cache; `at` adds what one does."""
        return {
            "signal": self.timing.prepare_apart(steps),
            "blocks": [block.prepare_apart(None, memory, memory_mask) for block in self.blocks],
            **self.prepare_steps(steps),
        }

    def prepare_steps(self, steps=None):
        """Returns the weights of a step that belong to neither its signal nor its blocks, a dictionary."""
        return {}

    def at(self, context, places, lengths):
        """Returns a context of `prepare_decoding` at some `cache.Places`; lengths: [B or 1] int32."""
        return {
            **context,
            "signal": self.timing.at(context["signal"], places.indices[None, :], lengths),
            "blocks": [block.at(part, places) for block, part in zip(self.blocks, context["blocks"], strict=True)],
        }

    def cache_layout(self, steps):
        """Returns the `cache.CacheLayout` of this many steps (or blocks)."""
        attention = self.blocks[0].self_attention
        return CacheLayout(steps * getattr(self, "num_blocks", 1), attention.num_heads, attention.head_size)

    def empty_cache(self, batch, capacity, steps):
        """Returns a cache for one hypothesis that knows no position, {name: tensor}; see `layers.cache`."""
        layout, dtype = self.cache_layout(steps), self.compute_dtype
        shape = [layout.entries * batch * layout.heads, capacity, layout.size]
        tensors = {"keys": tf.zeros(shape, dtype), "values": tf.zeros(shape, dtype)}
        for name, (count, channels) in self.blocks[0].recent_inputs().items():
            tensors[name] = tf.zeros([layout.entries, batch, 1, count, channels], dtype)
        for name in () if self.halting is None else self.halting.running_sums():
            tensors[name] = tf.zeros([steps, batch, 1], tf.float32)
        return tensors

    def get_config(self):
        names = ("max_steps", "signal", "input_dropout", "remat")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}, **self._block}


def at_least_one(max_steps):
    """Returns max_steps; ValueError when there is not a single step."""
    if max_steps < 1:
        raise ValueError(f"max_steps={max_steps}: there has to be at least one step")
    return max_steps


def positions_or_default(positions, x):
    """Returns the positions, [B or 1, L] int32; None is 0, 1, 2, ..."""
    return tf.range(tf.shape(x)[1])[None, :] if positions is None else positions
