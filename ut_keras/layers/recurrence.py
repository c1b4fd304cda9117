"""The recurrence over depth as a layer: training, inference on what is real alone, and one position after another.

Legend: B batch, L length, S memory length, D hidden size, T steps, R blocks of a step, H heads; with a cache K
hypotheses and Q new positions, N real positions of packed rows.
"""

import keras
import tensorflow as tf

from ut_keras.layers.body import positions_or_default
from ut_keras.layers.depth_loop import DepthLoop, Pass
from ut_keras.layers.halting import Ponder
from ut_keras.layers.masks import up_to_last
from ut_keras.layers.packing import PackedRows


@keras.saving.register_keras_serializable("ut_keras")
class UniversalRecurrence(DepthLoop):
    """One side of a Universal Transformer: the same blocks applied at every step, with or without halting.

    Each step: state + signals -> halting probability -> blocks -> new state. A batch stops when its last
    position has halted, and at `max_steps` in any case.

    Args:
        max_steps: T: the number of steps, or the most there are with halting.
        halting: "none", a form's name ("basic", "accumulated", "global", "random", "frozen") or an
            `AdaptiveComputationTime`, whose configuration is taken.
        num_blocks: distinct blocks inside one step.
        recurrence: what a step does with the state: "basic", "highway", "skip", "dwa", "rnn", "gru" or "lstm", or
            {"type": one of these, **its own arguments}; see `recurrence_type.TYPES`. Every halting goes with each.
        sru: two simple recurrent units over the positions, at the start of every step (T2T add_sru).
        signal: keyword arguments of `TimingSignal` (without max_steps).
        input_dropout: rate on the input, before the first signal.
        remat: recompute each step in the backward pass: memory nearly flat in T, about a third more time.
        conditional: at inference compute what is needed alone: nothing for padding, and with halting "frozen" (one
            block, transition "fc") no query and no transition for halted positions. False: all positions at every
            step, as in training, under XLA, for "sepconv", SRU and relative attention; real positions get the same.
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
        recurrence="basic",
        sru=False,
        closing_norm=True,
        name=None,
        dtype=None,
        trainable=True,
        **block,
    ):
        super().__init__(
            max_steps,
            halting,
            num_blocks,
            recurrence,
            sru,
            conditional,
            block,
            signal=signal,
            input_dropout=input_dropout,
            remat=remat,
            closing_norm=closing_norm,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )

    def prepare(self, padding_mask, positions, lengths, memory, memory_mask, steps):
        """Returns what no step changes, a nest of tensors."""
        return {
            "signal": self.timing.prepare(positions, lengths, steps),
            "blocks": [block.prepare(padding_mask, memory, memory_mask) for block in self.blocks],
            **self.prepare_steps(steps),
        }

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
        if seed is None and not trace and self.packs():
            return self._run_packed(x, padding_mask, positions, lengths, memory, memory_mask, steps)
        x = self.drop_input(x, seed)
        context = self.prepare(padding_mask, positions, lengths, memory, memory_mask, steps)
        loop = self.run(x, Pass(padding_mask, context, steps, seed, trace))
        output, ponder = self.outcome(loop, padding_mask, steps)
        traces = {**loop["traces"], "steps": loop["step"], "pre_final_norm": output}
        output = self.finish(output)
        return (output, ponder, traces) if trace else (output, ponder)

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
        run = Pass(running, context, steps, places=places)
        loop = self.run(x, run, tensors)
        # Later positions may run further, and read there what these are now.
        tensors = self.fill(loop, run) if self._rests else loop["cache"]
        output, ponder = self.outcome(loop, running, steps)
        return self.finish(output), ponder.ponder_times, tensors

    def _run_packed(self, x, padding_mask, positions, lengths, memory, memory_mask, steps):
        # Those behind it read a decoder's padding: nothing masks it there.
        packed = PackedRows(up_to_last(padding_mask) if self.causal else padding_mask)
        positions = packed.pack(positions[..., None])[..., 0]
        lengths = packed.pack(tf.broadcast_to(lengths[:, None, None], [tf.size(lengths), packed.length, 1]))[:, 0, 0]
        context = {
            "signal": self.timing.prepare(positions, lengths, steps),
            "blocks": [block.prepare_apart(padding_mask, memory, memory_mask) for block in self.blocks],
            **self.prepare_steps(steps),
        }
        real = packed.mask_of(padding_mask)
        everyone = None if self._rests else packed.active()
        loop = self.run(packed.pack(x), Pass(real, context, steps, packed=packed, everyone=everyone))
        output, ponder = self.outcome(loop, real, steps)
        output = packed.restore(self.finish(output), 0.0)
        flat = (ponder.ponder_times, ponder.remainders, ponder.weights)
        times, remainders, weights = (packed.restore(value[..., None], 0.0)[..., 0] for value in flat)
        padding = 0.0 if self.halting is None else 1.0
        by_step = tf.transpose(ponder.halting_probability, [1, 2, 0])
        probability = tf.transpose(packed.restore(by_step, padding), [2, 0, 1])
        return tf.ensure_shape(output, x.shape), Ponder(times, remainders, probability, weights)

    def get_config(self):
        return {
            **super().get_config(),
            "halting": "none" if self.halting is None else keras.saving.serialize_keras_object(self.halting),
            "recurrence": self._recurrence,
            "sru": self.sru is not None,
            **{name: getattr(self, name) for name in ("num_blocks", "conditional", "closing_norm")},
        }
