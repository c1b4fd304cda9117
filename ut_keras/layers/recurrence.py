"""The recurrence over depth: one tf.while_loop, whatever the halting.

Legend: B batch, L length, S memory length, D hidden size, T steps.
"""

import keras
import tensorflow as tf

from ut_keras.layers.body import Body, at_least_one, positions_or_default
from ut_keras.layers.dropout import fold_seed
from ut_keras.layers.halting import Ponder
from ut_keras.layers.remat import recompute


class BasicRecurrence:
    """Recurrence type "basic": the new state is what the blocks make of the old one.

    A recurrence type says what a step does with the state: `initial_state` makes the loop's carry from the
    input [B, L, D], `step` makes the next carry from the old one and the blocks' output, and `output` gives the
    state that others see.
    """

    def initial_state(self, x):
        return x

    def step(self, carry, transformed):
        return transformed

    def output(self, carry):
        return carry


@keras.saving.register_keras_serializable("ut_keras")
class UniversalRecurrence(Body):
    """One side of a Universal Transformer: the same blocks applied at every step, with or without halting.

    Each step: state + signals -> halting probability -> blocks -> new state. A batch stops when its last
    position has halted, and at `max_steps` in any case.

    Args:
        max_steps: T: the number of steps, or the most there are with halting.
        halting: "none", a form's name ("basic", "accumulated", "global", "random", "frozen") or an
            `AdaptiveComputationTime`, whose configuration is taken.
        num_blocks: distinct blocks inside one step.
        signal: keyword arguments of `TimingSignal` (without max_steps).
        input_dropout: rate on the input, before the first signal.
        remat: recompute each step in the backward pass: memory nearly flat in T, about a third more time.
        **block: arguments of `Block`.

    Call arguments:
        x: [B, L, D] float, embeddings.
        padding_mask: [B, L] bool, True at real positions.
        positions: [B or 1, L] int32 from 0; None: 0, 1, 2, ...
        lengths: [B or 1] int32 for start index "step"; None: the number of real positions.
        memory, memory_mask: [B, S, D] float and [B, S] bool, with cross-attention.
        seed: [2] int32 for dropout and noise; None: inference.
        max_steps: steps of this call instead of T (elastic depth).
        trace: also return what each step saw, for tests and pictures.

    Returns:
        ([B, L, D] output, Ponder), and with `trace` a dictionary of [T, B, L, ...] tensors: `pre_state`,
        `probability`, `state`, `output`, `remainders`, `ponder_times`, and `steps`, the number of steps run.

    Example:

    >>> recurrence = UniversalRecurrence(max_steps=3, halting="basic", num_heads=2, filter_size=8)
    >>> output, ponder = recurrence(tf.ones([1, 3, 4]), tf.constant([[True, True, False]]))
    >>> ponder.ponder_times.numpy()[0, 2]  # padding never runs
    np.float32(0.0)

    Source: paper section 2, eq. 4-7 and appendix C; T2T universal_transformer_util.py.
    """

    def __init__(
        self,
        max_steps=6,
        halting="none",
        num_blocks=1,
        signal=None,
        input_dropout=0.0,
        remat=False,
        name=None,
        dtype=None,
        trainable=True,
        **block,
    ):
        names = [f"rec_layer_{index}" for index in range(num_blocks)]
        layer = {"name": name, "dtype": dtype, "trainable": trainable}
        super().__init__(max_steps, names, signal, input_dropout, remat, block, halting, **layer)
        self.num_blocks = num_blocks
        self.recurrence_type = BasicRecurrence()

    def prepare(self, padding_mask, positions, lengths, memory, memory_mask, max_steps):
        """Returns what no step changes, a nest of tensors."""
        return {
            "signal": self.timing.prepare(positions, lengths, max_steps),
            "blocks": [block.prepare(padding_mask, memory, memory_mask) for block in self.blocks],
            "halting": [] if self.halting is None else self.halting.prepare(),
        }

    def transform(self, state, step, seed, context):
        """Returns (state with signals, blocks' output) of one step, both [B, L, D]."""
        pre_state = self.timing.add_to(state, step, context["signal"])
        new = pre_state
        for index, (block, block_context) in enumerate(zip(self.blocks, context["blocks"], strict=True)):
            new = block.apply(new, block_context, fold_seed(seed, index))
        return pre_state, new

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
        steps = self.max_steps if max_steps is None else at_least_one(max_steps)
        positions = positions_or_default(positions, x)
        if lengths is None:
            lengths = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1)
        x = self.drop_input(x, seed)
        context = self.prepare(padding_mask, positions, lengths, memory, memory_mask, steps)
        loop = {"step": tf.constant(0), "carry": self.recurrence_type.initial_state(x)}
        if self.halting is not None:
            loop["halting"] = self.halting.initial_state(padding_mask)
            loop["output"] = tf.zeros_like(x)
        loop["traces"] = self._empty_traces(x, steps, trace)

        def runs_on(loop):
            return loop["step"] < steps if self.halting is None else self.halting.runs_on(loop["halting"])

        def body(loop):
            return (self._step(loop, steps, padding_mask, seed, context),)

        # Steps that overlap in the backward pass would each hold what they recompute.
        parallel = 1 if self.remat else 10
        (loop,) = tf.while_loop(runs_on, body, (loop,), parallel_iterations=parallel, maximum_iterations=steps)
        output, ponder = self._finish(loop, padding_mask, steps)
        output = self.finish(output)
        if trace:
            return output, ponder, {**loop["traces"], "steps": loop["step"]}
        return output, ponder

    def _step(self, loop, steps, padding_mask, seed, context):
        step = loop["step"]
        step_seed = fold_seed(seed, step)
        state = self.recurrence_type.output(loop["carry"])
        if self.remat:
            pre_state, new = recompute(self.transform, state, step, step_seed, context)
        else:
            pre_state, new = self.transform(state, step, step_seed, context)
        carry = self.recurrence_type.step(loop["carry"], new)
        after = {**loop, "step": step + 1, "carry": carry}
        seen = {"pre_state": pre_state, "state": new}
        if self.halting is not None:
            probability = self.halting.probability(
                pre_state, context["halting"], padding_mask, self.causal, fold_seed(step_seed, -2), step
            )
            halting, weight, running = self.halting.step(loop["halting"], probability, step + 1 >= steps)
            after["halting"] = halting
            after["carry"] = tf.nest.map_structure(lambda a, b: self.halting.keep(a, b, running), loop["carry"], carry)
            after["output"] = self.halting.mix(loop["output"], self.recurrence_type.output(carry), weight)
            seen |= {
                "probability": probability,
                "halting_probability": halting.probability,
                "remainders": halting.remainders,
                "ponder_times": halting.ponder_times,
                "output": after["output"],
            }
        after["traces"] = {
            name: tf.tensor_scatter_nd_update(kept, [[step]], tf.stop_gradient(seen[name])[None])
            for name, kept in loop["traces"].items()
        }
        return after

    def _empty_traces(self, x, steps, trace):
        """Preallocated [T, ...] tensors. A step that is not run leaves halting probability 1, all else 0."""
        shape = tf.shape(x)
        wide = tf.zeros(tf.concat([[steps], shape], 0), x.dtype)
        flat = tf.zeros(tf.concat([[steps], shape[:2]], 0), tf.float32)
        traces = {}
        if self.halting is not None:
            traces["halting_probability"] = tf.ones_like(flat)
        if trace:
            traces |= {"pre_state": wide, "state": wide}
            if self.halting is not None:
                traces |= {"probability": flat, "remainders": flat, "ponder_times": flat, "output": wide}
        return traces

    def _finish(self, loop, padding_mask, steps):
        counted = padding_mask if self.halting is None else self.halting.counted(padding_mask)
        weights = tf.cast(counted, tf.float32)
        if self.halting is None:
            ponder_times = tf.cast(steps, tf.float32) * weights
            probability = tf.zeros(tf.concat([[steps], tf.shape(weights)], 0))
            ponder = Ponder(ponder_times, tf.zeros_like(weights), probability, weights)
            return self.recurrence_type.output(loop["carry"]), ponder
        halting = loop["halting"]
        traced = tf.stop_gradient(loop["traces"]["halting_probability"])
        return loop["output"], Ponder(tf.stop_gradient(halting.ponder_times), halting.remainders, traced, weights)

    def get_config(self):
        halting = "none" if self.halting is None else keras.saving.serialize_keras_object(self.halting)
        return {**super().get_config(), "halting": halting, "num_blocks": self.num_blocks}
