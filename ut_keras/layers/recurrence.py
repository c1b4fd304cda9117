"""The recurrence over depth: one tf.while_loop, whatever the halting.

Legend: B batch, L length, S memory length, D hidden size, T steps, R blocks of a step, H heads; with a cache K
hypotheses and Q new positions, N real positions of packed rows.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from ut_keras.layers.body import Body, positions_or_default
from ut_keras.layers.cache import CacheView
from ut_keras.layers.dropout import fold_seed
from ut_keras.layers.halting import Ponder
from ut_keras.layers.masks import up_to_last
from ut_keras.layers.packing import PackedRows
from ut_keras.layers.remat import recompute
from ut_keras.layers.traces import attention_traces, empty_traces, record
from ut_keras.layers.xla import compiles_with_xla


class _Pass(NamedTuple):
    """What a pass over the steps keeps the same: see `UniversalRecurrence._run`."""

    mask: Any
    context: Any
    steps: int
    seed: Any = None
    trace: bool = False
    places: Any = None
    packed: Any = None
    everyone: Any = None


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
        conditional: at inference compute what is needed alone: nothing for padding, and with halting "frozen" (one
            block, transition "fc") no query and no transition for halted positions. False: all positions at every
            step, as in training, under XLA, for "sepconv" and for relative attention; real positions get the same.
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
        `probability`, `state`, `output`, `remainders`, `ponder_times`, of attention weights `self_attention` and
        `encdec_attention` [T, R, B, H, L, L or S], and `steps`, the number of steps run.

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
        conditional=True,
        name=None,
        dtype=None,
        trainable=True,
        **block,
    ):
        names = [f"rec_layer_{index}" for index in range(num_blocks)]
        layer = {"name": name, "dtype": dtype, "trainable": trainable}
        super().__init__(max_steps, names, signal, input_dropout, remat, block, halting, **layer)
        self.num_blocks = num_blocks
        self.conditional = conditional
        self.recurrence_type = BasicRecurrence()

    @property
    def _rests(self):
        """Whether nothing but keys and values of its state is ever asked of a halted position."""
        freezes = self.halting is not None and self.halting.form == "frozen"
        return freezes and self.num_blocks == 1 and self.blocks[0].ffn.kind == "fc"

    def prepare(self, padding_mask, positions, lengths, memory, memory_mask, max_steps):
        """Returns what no step changes, a nest of tensors."""
        return {
            "signal": self.timing.prepare(positions, lengths, max_steps),
            "blocks": [block.prepare(padding_mask, memory, memory_mask) for block in self.blocks],
            "halting": self.prepare_halting(),
        }

    def transform(self, state, step, seed, context, tensors=None, places=None, active=None, watch=None, moving=None):
        """Returns (state with signals, blocks' output) of one step, both [B, L, D].

        `tensors` are the cache's at `places`, changed in place; for the last three see `Block.apply`.
        """
        pre_state = self.timing.add_to(state, step, context["signal"])
        new = pre_state
        for index, (block, block_context) in enumerate(zip(self.blocks, context["blocks"], strict=True)):
            view = None if places is None else CacheView(tensors, step * self.num_blocks + index, places)
            new = block.apply(new, block_context, fold_seed(seed, index), view, active, watch, moving)
        return pre_state, new if active is None else active.merge(pre_state, new)

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
        steps = self.depth(max_steps)
        positions = positions_or_default(positions, x)
        if lengths is None:
            lengths = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1)
        if seed is None and not trace and self._packs():
            return self._run_packed(x, padding_mask, positions, lengths, memory, memory_mask, steps)
        x = self.drop_input(x, seed)
        context = self.prepare(padding_mask, positions, lengths, memory, memory_mask, steps)
        loop = self._run(x, _Pass(padding_mask, context, steps, seed, trace))
        output, ponder = self._finish(loop, padding_mask, steps)
        output = self.finish(output)
        if trace:
            return output, ponder, {**loop["traces"], "steps": loop["step"]}
        return output, ponder

    def advance(self, x, running, context, tensors, places, steps):
        """Computes new positions behind those that a cache knows.

        Args:
            x: [B, K*Q, D] float, embeddings of the new positions.
            running: [B, K*Q] bool; where False, nothing is looked at and nothing prolongs the loop.
            context: what `prepare_decoding` and `at` returned.
            tensors: the cache's.
            places: `cache.Places`.
            steps: T of this call.

        Returns:
            ([B, K*Q, D] output, [B, K*Q] float32 ponder times, the cache's tensors with the new positions).
        """
        loop = self._run(x, _Pass(running, context, steps, places=places), tensors)
        tensors = loop["cache"]
        if self._rests:
            state = self.recurrence_type.output(loop["carry"])

            def fill(step, tensors):
                tensors = dict(tensors)
                pre_state = self.timing.add_to(state, step, context["signal"])
                self.blocks[0].remember(pre_state, context["blocks"][0], CacheView(tensors, step, places))
                return step + 1, tensors

            # Later positions may run further, and read this one's state there as it is now.
            _, tensors = tf.while_loop(lambda step, _: step < steps, fill, (loop["step"], tensors))
        output, ponder = self._finish(loop, running, steps)
        return self.finish(output), ponder.ponder_times, tensors

    def _packs(self):
        block = self.blocks[0]
        dense = block.ffn.kind != "fc" or block.self_attention.max_relative_position > 0
        counts_padding = self.halting is not None and self.halting.count_padding
        return self.conditional and not dense and not counts_padding and not compiles_with_xla()

    def _run_packed(self, x, padding_mask, positions, lengths, memory, memory_mask, steps):
        # Those behind it read a decoder's padding: nothing masks it there.
        packed = PackedRows(up_to_last(padding_mask) if self.causal else padding_mask)
        positions = packed.pack(positions[..., None])[..., 0]
        lengths = packed.pack(tf.broadcast_to(lengths[:, None, None], [tf.size(lengths), packed.length, 1]))[:, 0, 0]
        context = {
            "signal": self.timing.prepare(positions, lengths, steps),
            "blocks": [block.prepare_apart(padding_mask, memory, memory_mask) for block in self.blocks],
            "halting": self.prepare_halting(),
        }
        real = packed.mask_of(padding_mask)
        everyone = None if self._rests else packed.active()
        loop = self._run(packed.pack(x), _Pass(real, context, steps, packed=packed, everyone=everyone))
        output, ponder = self._finish(loop, real, steps)
        output = packed.restore(self.finish(output), 0.0)
        flat = (ponder.ponder_times, ponder.remainders, ponder.weights)
        times, remainders, weights = (packed.restore(value[..., None], 0.0)[..., 0] for value in flat)
        padding = 0.0 if self.halting is None else 1.0
        by_step = tf.transpose(ponder.halting_probability, [1, 2, 0])
        probability = tf.transpose(packed.restore(by_step, padding), [2, 0, 1])
        return tf.ensure_shape(output, x.shape), Ponder(times, remainders, probability, weights)

    def _run(self, x, run, cache=None):
        """Returns the loop's variables after the last step; x: [B, L, D], run: `_Pass`, cache: its tensors."""
        loop = {"step": tf.constant(0), "carry": self.recurrence_type.initial_state(x), "cache": dict(cache or {})}
        if self.halting is not None:
            loop["halting"] = self.halting.initial_state(run.mask)
            loop["output"] = tf.zeros_like(x)
        loop["traces"] = {}
        if cache is None:
            loop["traces"] = empty_traces(x, run.steps, self.halting is not None, run.trace)
        if run.trace:
            loop["traces"] |= attention_traces(self.blocks, run.context["blocks"], run.steps, x)
        # What a later position reads has to be there, at every step that it may run.
        to_the_end = self.halting is None or (cache is not None and not self._rests)

        def runs_on(loop):
            return loop["step"] < run.steps if to_the_end else self.halting.runs_on(loop["halting"])

        def body(loop):
            return (self._step(loop, run),)

        # Steps that overlap in the backward pass would each hold what they recompute.
        parallel = 1 if self.remat else 10
        (loop,) = tf.while_loop(runs_on, body, (loop,), parallel_iterations=parallel, maximum_iterations=run.steps)
        return loop

    def _step(self, loop, run):
        step, context, tensors = loop["step"], run.context, dict(loop["cache"])
        step_seed = fold_seed(run.seed, step)
        state = self.recurrence_type.output(loop["carry"])
        watch = {"self_attention": [], "encdec_attention": []} if run.trace else None
        if self.remat and run.packed is None and run.places is None and not run.trace:
            pre_state, new = recompute(self.transform, state, step, step_seed, context)
        else:
            active, moving = run.everyone, None
            if run.packed is not None and active is None:
                active = run.packed.active(loop["halting"].probability < 1.0)
            elif run.places is not None and self._rests and self._packs():
                moving = PackedRows(loop["halting"].probability < 1.0)
            pre_state, new = self.transform(state, step, step_seed, context, tensors, run.places, active, watch, moving)
        carry = self.recurrence_type.step(loop["carry"], new)
        after = {**loop, "step": step + 1, "carry": carry}
        seen = {"pre_state": pre_state, "state": new}
        if run.trace:
            seen |= {name: tf.stack(weights) for name, weights in watch.items() if weights}
        if self.halting is not None:
            view = None if run.places is None else CacheView(tensors, step, run.places)
            noise = fold_seed(step_seed, -2)
            probability = self.halting.probability(
                pre_state, context["halting"], run.mask, self.causal, noise, step, view, run.packed
            )
            halting, weight, running = self.halting.step(loop["halting"], probability, step + 1 >= run.steps)
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
        return {**after, "cache": tensors, "traces": record(loop["traces"], step, seen)}

    def _finish(self, loop, padding_mask, steps):
        """Returns (the recurrence's output [B, L, D], Ponder); without traces the probabilities are none."""
        counted = padding_mask if self.halting is None else self.halting.counted(padding_mask)
        weights = tf.cast(counted, tf.float32)
        if self.halting is None:
            ponder_times = tf.cast(steps, tf.float32) * weights
            probability = tf.zeros(tf.concat([[steps], tf.shape(weights)], 0))
            ponder = Ponder(ponder_times, tf.zeros_like(weights), probability, weights)
            return self.recurrence_type.output(loop["carry"]), ponder
        halting = loop["halting"]
        traced = loop["traces"].get("halting_probability")
        traced = None if traced is None else tf.stop_gradient(traced)
        return loop["output"], Ponder(tf.stop_gradient(halting.ponder_times), halting.remainders, traced, weights)

    def get_config(self):
        halting = "none" if self.halting is None else keras.saving.serialize_keras_object(self.halting)
        names = ("num_blocks", "conditional")
        return {**super().get_config(), "halting": halting, **{name: getattr(self, name) for name in names}}
