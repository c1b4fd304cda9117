"""The plain Transformer's stack: T different blocks, one after the other, behind the recurrence's interface."""

import keras
import tensorflow as tf

from ut_keras.layers.body import Body, positions_or_default
from ut_keras.layers.cache import CacheView
from ut_keras.layers.dropout import fold_seed
from ut_keras.layers.remat import recompute


@keras.saving.register_keras_serializable("ut_keras")
class BlockStack(Body):
    """`max_steps` different blocks, each applied once; the position signal is added once, before the first.

    The baseline to `UniversalRecurrence`: the same blocks, arguments and call, no recurrence, no halting.

    Args:
        max_steps: number of blocks.
        signal: `layout` and `position` of `TimingSignal`.
        input_dropout: rate on the input, after the signal.
        remat: recompute each block in the backward pass.
        closing_norm: whether there is a norm behind the last block, which pre-norm needs; see `Body`.
        **block: arguments of `Block`.

    Call arguments:
        x, padding_mask, positions, memory, memory_mask, seed: as `UniversalRecurrence`.
        trace: also return {"state": [T, B, L, D]}, the state after each block, the last of them as "pre_final_norm"
            [B, L, D], and the attention weights "self_attention", "encdec_attention" [T, 1, B, H, L, L or S].

    Returns:
        ([B, L, D] output, ()), as there is no halting; and the traces where asked for.

    Example:

    >>> stack = BlockStack(max_steps=2, num_heads=2, filter_size=8)
    >>> stack(tf.ones([1, 3, 4]), tf.constant([[True, True, False]]))[0].shape.as_list()
    [1, 3, 4]

    Source: Vaswani et al. 2017; T2T models/transformer.py.
    """

    def __init__(
        self,
        max_steps=6,
        signal=None,
        input_dropout=0.0,
        remat=False,
        closing_norm=True,
        name=None,
        dtype=None,
        trainable=True,
        **block,
    ):
        unknown = set(signal or {}) - {"layout", "position"}
        if unknown:
            raise ValueError(f"signal={sorted(unknown)}: a stack of blocks has layout and position, no steps")
        names = [f"layer_{index}" for index in range(max_steps)]
        options = {"closing_norm": closing_norm, "name": name, "dtype": dtype, "trainable": trainable}
        super().__init__(max_steps, names, signal, input_dropout, remat, block, step="none", **options)

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
        self.depth(max_steps)
        x = self.timing.add_to(x, 0, self.timing.prepare(positions_or_default(positions, x)))
        x = self.drop_input(x, seed)
        states = []
        watch = {"self_attention": [], "encdec_attention": []} if trace else None
        for index, block in enumerate(self.blocks):

            def transform(state, index, seed, context, block=block):
                return block.apply(state, context, seed, watch=watch)

            context = block.prepare(padding_mask, memory, memory_mask)
            arguments = (x, tf.constant(index), fold_seed(seed, index), context)
            x = recompute(transform, *arguments) if self.remat and not trace else transform(*arguments)
            states.append(x)
        output = self.finish(x)
        if not trace:
            return output, ()
        weights = {name: tf.stack(seen)[:, None] for name, seen in watch.items() if seen}
        return output, (), {"state": tf.stack(states), "pre_final_norm": x, **weights}

    def depth(self, max_steps=None):
        """Returns the number of blocks; ValueError where another is asked for."""
        if max_steps not in (None, self.max_steps):
            raise ValueError(f"max_steps={max_steps}: a stack of {self.max_steps} different blocks has no other depth")
        return self.max_steps

    def advance(self, x, running, context, tensors, places, steps):
        """Computes new positions behind those that a cache knows; as `UniversalRecurrence.advance`."""
        tensors = dict(tensors)
        x = self.timing.add_to(x, 0, context["signal"])
        for index, (block, part) in enumerate(zip(self.blocks, context["blocks"], strict=True)):
            x = block.apply(x, part, view=CacheView(tensors, self.first_entry + index, places))
        return self.finish(x), tf.cast(running, tf.float32), tensors
