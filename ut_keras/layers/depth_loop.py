"""The loop over depth: one tf.while_loop, whatever the recurrence type and the halting.

Legend: B batch, L length, D hidden size, T steps, R blocks of a step; with a cache K hypotheses and Q new positions.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from ut_keras.layers.body import Body
from ut_keras.layers.cache import CacheView
from ut_keras.layers.dropout import fold_seed
from ut_keras.layers.halting import Ponder
from ut_keras.layers.packing import PackedRows
from ut_keras.layers.recurrence_type import make_type
from ut_keras.layers.remat import recompute
from ut_keras.layers.sru import Sru
from ut_keras.layers.traces import attention_traces, empty_traces, record
from ut_keras.layers.xla import compiles_with_xla


class Pass(NamedTuple):
    """What a pass over the steps keeps the same: see `DepthLoop.run`."""

    mask: Any
    context: Any
    steps: int
    seed: Any = None
    trace: bool = False
    places: Any = None
    packed: Any = None
    everyone: Any = None


class DepthLoop(Body):
    """Base of `UniversalRecurrence`: its layers, one step, and the loop over the steps.

    Args:
        max_steps, halting, num_blocks, recurrence, sru, conditional, block: as of `UniversalRecurrence`.
        **body: the other arguments of `Body`.
    """

    def __init__(self, max_steps, halting, num_blocks, recurrence, sru, conditional, block, **body):
        names = ("norm", "norm_epsilon", "filter_size", "relu_dropout")
        shared = {"max_steps": max_steps, **{name: block[name] for name in names if name in block}}
        kind = make_type(recurrence, **shared, name="type", dtype=body.get("dtype"))
        block = block if kind.transition else {**block, "transition": "none"}
        if num_blocks < 1:
            raise ValueError(f"num_blocks={num_blocks}: a step has at least one block")
        names = [f"rec_layer_{index}" for index in range(num_blocks)]
        super().__init__(max_steps=max_steps, block_names=names, halting=halting, block=block, **body)
        self.num_blocks = num_blocks
        self._recurrence = recurrence
        self.conditional = conditional
        self.type = kind
        self.sru = Sru(name="sru", dtype=self.dtype_policy) if sru else None

    def build(self, shape):
        super().build(shape)
        for layer in (self.type, self.sru):
            if layer is not None:
                layer.build((None, None, shape[-1]))

    @property
    def _rests(self):
        """Whether nothing but keys and values of its state is ever asked of a halted position."""
        freezes = self.halting is not None and self.halting.form == "frozen"
        return freezes and self.num_blocks == 1 and self._pointwise

    @property
    def _pointwise(self):
        """Whether nothing but attention reads other positions."""
        return self.sru is None and self.blocks[0].pointwise

    def packs(self):
        """Returns whether inference computes what is needed alone."""
        dense = not self._pointwise or self.blocks[0].self_attention.max_relative_position > 0
        counts_padding = self.halting is not None and self.halting.count_padding
        return self.conditional and not dense and not counts_padding and not compiles_with_xla()

    def empty_cache(self, batch, capacity, steps):
        tensors = super().empty_cache(batch, capacity, steps)
        for name, shape in ({} if self.sru is None else self.sru.latest_states()).items():
            tensors[name] = tf.zeros([steps, batch, 1, *shape])
        return tensors

    def prepare_steps(self, steps=None):
        return {
            "type": self.type.prepare(self.depth(steps)),
            "sru": [] if self.sru is None else self.sru.prepare(),
            "halting": [] if self.halting is None else self.halting.prepare(),
        }

    def transform(self, carry, step, seed, context, tensors=None, places=None, active=None, watch=None, moving=None):
        """One step: returns (the state with its signals [B, L, D], the carry after the step).

        `tensors` are the cache's at `places`, changed in place; for the last three see `Block.apply`.
        """
        pre_state = self.signalled(carry, step, context, tensors, places)
        new = pre_state
        for index, (block, block_context) in enumerate(zip(self.blocks, context["blocks"], strict=True)):
            entry = self.first_entry + step * self.num_blocks + index
            view = None if places is None else CacheView(tensors, entry, places)
            new = block.apply(new, block_context, fold_seed(seed, index), view, active, watch, moving)
        constants, real = context["constants"], context["real"]
        before = carry
        if active is not None:
            before, constants = (tf.nest.map_structure(active.chosen, nest) for nest in (carry, constants))
        after = self.type.step(before, new, step, context["type"], constants, real, fold_seed(seed, -3))
        if active is not None:
            after = tf.nest.map_structure(active.merge, carry, after)
        return pre_state, after

    def signalled(self, carry, step, context, tensors=None, places=None):
        """Returns what the halting unit and the blocks of a step read, [B, L, D]."""
        x = self.timing.add_to(self.type.read(carry), step, context["signal"])
        if self.sru is None:
            return x
        return self.sru.transform(x, context["sru"], None if places is None else CacheView(tensors, step, places))

    def begin(self, x, run):
        """Returns (the carry before the first step, the context with what the type computes once of x [B, L, D])."""
        # What padding gets is never read; that it gets nothing is T2T's pad remover, for its numbers.
        zeroes = self.blocks[0].zero_padding and run.packed is None and run.places is None
        real = run.mask[..., None] if zeroes else None
        carry, constants = self.type.begin(x, run.context["type"], real, fold_seed(run.seed, -3))
        return carry, {**run.context, "constants": constants, "real": real}

    def run(self, x, run, cache=None):
        """Returns the loop's variables after the last step; x: [B, L, D], run: `Pass`, cache: its tensors."""
        carry, context = self.begin(x, run)
        run = run._replace(context=context)
        loop = {"step": tf.constant(0), "carry": carry, "cache": dict(cache or {})}
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

    def fill(self, loop, run):
        """Returns the cache's tensors with what later steps read of positions that rest in the state they have."""

        def fill(step, tensors):
            tensors = dict(tensors)
            pre_state = self.signalled(loop["carry"], step, run.context, tensors, run.places)
            view = CacheView(tensors, self.first_entry + step, run.places)
            self.blocks[0].remember(pre_state, run.context["blocks"][0], view)
            return step + 1, tensors

        return tf.while_loop(lambda step, _: step < run.steps, fill, (loop["step"], loop["cache"]))[1]

    def _step(self, loop, run):
        step, context, tensors = loop["step"], run.context, dict(loop["cache"])
        step_seed = fold_seed(run.seed, step)
        watch = {"self_attention": [], "encdec_attention": []} if run.trace else None
        if self.remat and run.packed is None and run.places is None and not run.trace:
            pre_state, carry = recompute(self.transform, loop["carry"], step, step_seed, context)
        else:
            active, moving = run.everyone, None
            if run.packed is not None and active is None:
                active = run.packed.active(loop["halting"].probability < 1.0)
            elif run.places is not None and self._rests and self.packs():
                moving = PackedRows(loop["halting"].probability < 1.0)
            pre_state, carry = self.transform(
                loop["carry"], step, step_seed, context, tensors, run.places, active, watch, moving
            )
        after = {**loop, "step": step + 1, "carry": carry}
        seen = {"pre_state": pre_state, "state": self.type.output(carry)}
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
            after["output"] = self.halting.mix(loop["output"], self.type.result(carry), weight)
            seen |= {
                "probability": probability,
                "halting_probability": halting.probability,
                "remainders": halting.remainders,
                "ponder_times": halting.ponder_times,
                "output": after["output"],
            }
        return {**after, "cache": tensors, "traces": record(loop["traces"], step, seen)}

    def outcome(self, loop, padding_mask, steps):
        """Returns (the recurrence's output [B, L, D], Ponder); without traces the probabilities are none."""
        counted = padding_mask if self.halting is None else self.halting.counted(padding_mask)
        weights = tf.cast(counted, tf.float32)
        if self.halting is None:
            ponder_times = tf.cast(steps, tf.float32) * weights
            probability = tf.zeros(tf.concat([[steps], tf.shape(weights)], 0))
            ponder = Ponder(ponder_times, tf.zeros_like(weights), probability, weights)
            return self.type.result(loop["carry"]), ponder
        halting = loop["halting"]
        traced = loop["traces"].get("halting_probability")
        traced = None if traced is None else tf.stop_gradient(traced)
        return loop["output"], Ponder(tf.stop_gradient(halting.ponder_times), halting.remainders, traced, weights)
