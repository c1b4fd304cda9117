"""The plain Transformer's stack: T different blocks, one after the other, behind the recurrence's interface."""

import keras
import tensorflow as tf

from ut_keras.layers.block import Block
from ut_keras.layers.dropout import dropout, fold_seed
from ut_keras.layers.normalization import LayerNorm
from ut_keras.layers.remat import recompute
from ut_keras.layers.timing import TimingSignal


@keras.saving.register_keras_serializable("ut_keras")
class BlockStack(keras.layers.Layer):
    """`max_steps` different blocks, each applied once; the position signal is added once, before the first.

    The baseline to `UniversalRecurrence`: the same blocks, arguments and call, no recurrence, no halting.

    Args:
        max_steps: number of blocks.
        signal: `layout` and `position` of `TimingSignal`.
        input_dropout: rate on the input, after the signal.
        remat: recompute each block in the backward pass.
        **block: arguments of `Block`.

    Call arguments:
        x, padding_mask, positions, memory, memory_mask, seed: as `UniversalRecurrence`.
        trace: also return {"state": [T, B, L, D]}, the state after each block.

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
        name=None,
        dtype=None,
        trainable=True,
        **block,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.max_steps = max_steps
        self.signal = dict(signal or {})
        self.input_dropout = input_dropout
        self.remat = remat
        self._block = block
        policy = self.dtype_policy
        self.timing = TimingSignal(max_steps, step="none", name="timing", dtype=policy, **self.signal)
        self.blocks = [Block(name=f"layer_{i}", dtype=policy, **block) for i in range(max_steps)]
        self.causal = self.blocks[0].causal
        pre_norm = self.blocks[0].norm == "pre"
        self.final_norm = LayerNorm(block.get("norm_epsilon", 1e-6), name="norm", dtype=policy) if pre_norm else None

    def build(self, shape):
        shape = (None, None, shape[-1])
        for layer in (self.timing, *self.blocks, self.final_norm):
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
        if max_steps not in (None, self.max_steps):
            raise ValueError(f"max_steps={max_steps}: a stack of {self.max_steps} different blocks has no other depth")
        if positions is None:
            positions = tf.range(tf.shape(x)[1])[None, :]
        x = self.timing.add_to(x, 0, self.timing.prepare(positions))
        x = dropout(x, self.input_dropout, fold_seed(seed, -1))
        states = []
        for index, block in enumerate(self.blocks):

            def transform(state, index, seed, context, block=block):
                return block.apply(state, context, seed)

            context = block.prepare(padding_mask, memory, memory_mask)
            arguments = (x, tf.constant(index), fold_seed(seed, index), context)
            x = recompute(transform, *arguments) if self.remat else transform(*arguments)
            states.append(x)
        if self.final_norm is not None:
            x = self.final_norm.normalize(x, self.final_norm.prepare())
        return (x, (), {"state": tf.stack(states)}) if trace else (x, ())

    def get_config(self):
        names = ("max_steps", "signal", "input_dropout", "remat")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}, **self._block}
