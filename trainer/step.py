"""The training step, written once for one device and for many.

Each replica takes its rows of the global batch, adds up losses over them and divides by the counts of
the *global* batch; the sum over replicas is then the loss of the batch, however its rows were dealt.

Shapes: B examples of the global batch, L source length (S sentences of W words where inputs are
[B, S, W]), M target length; both count the end token. R replicas, T recurrent steps, n training steps.
"""

import keras
import tensorflow as tf

from trainer.micro_batches import accumulate, deal
from ut_keras import losses, metrics, optimizers
from ut_keras.layers.custom_gradient import never_differentiated


def make_optimizer(hparams, model, ema_decay=0.0, on_nan="stop"):
    """Returns the built optimizer of `model`, made under the strategy's scope; it scales the loss in mixed_float16.

    Args:
        hparams: an `HParams`.
        model: built.
        ema_decay: decay of an exponential moving average of the weights, per step; 0: none.
        on_nan: "skip": an update with gradients that are not finite is left out.
    """
    mixed_float16 = keras.config.dtype_policy().name == "mixed_float16"
    optimizer = optimizers.guarded(optimizers.from_hparams(hparams, ema_decay), mixed_float16, on_nan)
    optimizer.build(model.trainable_variables)
    return optimizer


class TrainStep:
    """Makes updates of the weights.

    Args:
        model: a model of `ut_keras`, built under the strategy's scope.
        optimizer: what `make_optimizer` returned.
        hparams: label_smoothing, act_loss_weight, act_loss_warmup_steps, act_count_padding and
            clip_grad_norm are read.
        batch_spec: {"inputs", "targets"} of TensorSpecs, dimensions None: one trace serves all shapes. None: one
            trace for each shape, all static, as a TPU needs it.
        strategy: a `tf.distribute` strategy; None is the current one.
        seed: seed of the run. Dropout is a function of (seed, step), so that a resumed run repeats nothing.
        jit_compile: compile forward and backward pass with XLA, once per batch shape.
        accumulation: the rows of a replica are taken in this many parts, one after the other, before the one update.
        several: calls of `run` make several updates; then one trace serves them all, those of one update too.

    Call arguments:
        batch: {"inputs": [B, L] or [B, S, W] int32, "targets": [B, M] int32}, the *global* batch: every replica of
            every worker is given all of it and takes its own rows. A row of padding alone is not there.
        step: int64 scalar, 0 before the first update.

    Returns:
        A dict of float32 tensors over the global batch: "loss" (what is minimised), "gradient_norm" (before
        clipping), "learning_rate", "applied" (0 where the update was left out, else 1), sums "cross_entropy",
        "right" and their count "tokens", "sequence_right" and its count "sequences", "examples", and for each side
        that ponders the sum "ponder_time/<side>", its count "positions/<side>", "ponder_max/<side>",
        "ponder_histogram/<side>" [T + 1], positions by the number of steps they took, and
        "halting_probability/<side>" [T], the sum over positions of the probability accumulated after each step.
    """

    def __init__(
        self,
        model,
        optimizer,
        hparams,
        batch_spec,
        strategy=None,
        seed=0,
        jit_compile=False,
        accumulation=1,
        several=False,
    ):
        self._model = model
        self._optimizer = optimizer
        self._hparams = hparams
        self._strategy = strategy or tf.distribute.get_strategy()
        self._seed = seed
        self._accumulation = accumulation
        self._replicas = self._strategy.num_replicas_in_sync
        self._forward_backward = self._gradients
        if jit_compile:
            self._forward_backward = tf.function(self._gradients, jit_compile=True)
        signature = None if batch_spec is None else [batch_spec, tf.TensorSpec([], tf.int64)]
        self.compiled = tf.function(self._step, input_signature=signature)
        self._one = tf.function(self._alone, input_signature=signature)
        self._several = tf.function(self._steps) if several else None

    def __call__(self, batch, step):
        return self.compiled(batch, tf.constant(step, tf.int64))

    def run(self, batches, step, count):
        """Makes `count` updates from step `step` on in one call of TensorFlow.

        Args:
            batches: an iterator of the batches; `count` of them are taken.
            step: the number of updates before.
            count: int; above 1 where `several`.

        Returns:
            The dict of a call, each tensor with a leading dimension [count].
        """
        step = tf.constant(step, tf.int64)
        if self._several:
            return self._several(batches, step, tf.constant(count))
        return self._one(next(batches), step)

    def replica_step(self, batch, step):
        """One update as one replica makes it, in its context: all that a device runs. XLA can compile it whole."""
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group
        real = _real_rows(batch["targets"])
        counts = global_counts(batch, self._hparams.act_count_padding)
        act_weight = self._act_weight(step)

        def part(rows, number):
            seed = step_seed(self._seed, step, replica * self._accumulation + number)
            return self._forward_backward(rows, counts, act_weight, seed)

        mine = {name: deal(ids, replica, self._replicas) for name, ids in batch.items()}
        (gradients, measured), largest = accumulate(part, mine, self._accumulation)
        gradients, measured, largest = all_reduce(context, gradients, measured, largest)
        measured.update(largest, **self._update(gradients, measured["loss"]))
        measured["tokens"] = counts["tokens"]
        measured["examples"] = _count(real)
        return measured

    def _gradients(self, batch, counts, act_weight, seed):
        """Returns ((gradients of the scaled loss, sums), maxima) over the rows of one part."""
        hparams, optimizer = self._hparams, self._optimizer
        with tf.GradientTape() as tape:
            logits, ponder = self._model(batch, training=True, return_ponder=True, seed=seed)
            rows = tf.cast(_real_rows(batch["targets"]), tf.float32)[:, None]
            ponder = {side: trace._replace(weights=trace.weights * rows) for side, trace in ponder.items()}
            cross_entropy, _ = losses.token_cross_entropy_sums(logits, batch["targets"], hparams.label_smoothing)
            loss = losses.mean(cross_entropy, counts["tokens"])
            if hparams.recurrence_type == "act":
                for side, (cost, _) in losses.ponder_sums(ponder).items():
                    loss += act_weight * losses.mean(cost, counts[side])
            scaled = optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self._model.trainable_variables, unconnected_gradients="zero")
        right = metrics.by_example(logits, batch["targets"])
        measured = {"loss": loss, "cross_entropy": cross_entropy}
        measured |= {name: tf.reduce_sum(right[name]) for name in ("right", "sequences", "sequence_right")}
        largest = {}
        for side, trace in ponder.items():
            times = trace.ponder_times * trace.weights
            measured[f"ponder_time/{side}"] = tf.reduce_sum(times)
            measured[f"positions/{side}"] = tf.reduce_sum(trace.weights)
            largest[f"ponder_max/{side}"] = tf.reduce_max(times)
            if hparams.recurrence_type == "act":
                steps = tf.range(hparams.act_max_steps + 1, dtype=tf.float32)
                taken = tf.cast(tf.reshape(trace.ponder_times, [-1, 1]) == steps, tf.float32)
                measured[f"ponder_histogram/{side}"] = tf.linalg.matvec(taken, tf.reshape(trace.weights, [-1]), True)
                halting = trace.halting_probability * trace.weights
                measured[f"halting_probability/{side}"] = tf.reduce_sum(halting, axis=[1, 2])
        return ([tf.convert_to_tensor(gradient) for gradient in gradients], measured), largest

    def _act_weight(self, step):
        weight = tf.constant(self._hparams.act_loss_weight, tf.float32)
        warmup = self._hparams.act_loss_warmup_steps
        return weight * tf.minimum(1.0, tf.cast(step, tf.float32) / warmup) if warmup else weight

    def _update(self, gradients, loss):
        """Clips the summed gradients and applies them; returns what there is to say of the update."""
        optimizer, limit = self._optimizer, self._hparams.clip_grad_norm
        rate = optimizer.learning_rate
        scale = optimizer.scale_loss(1.0)  # gradients are still multiplied by it
        norm = tf.linalg.global_norm(gradients)
        guarded = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        if guarded:
            # A loss may be infinite where its gradient is not: that update is to be left out as well.
            poison = tf.where(tf.math.is_finite(loss), 0.0, float("nan"))
            gradients = [gradient + tf.cast(poison, gradient.dtype) for gradient in gradients]
        if limit:
            gradients, _ = tf.clip_by_global_norm(gradients, limit * scale, use_norm=norm)
        # Keras adds the gradients up over replicas, which has been done: once more than needed, but clipping and the
        # norm want the sum, and Keras has no switch for it.
        shares = [gradient / self._replicas for gradient in gradients] if self._replicas > 1 else gradients
        applied = tf.cast(optimizer.check_finite(shares), tf.float32) if guarded else tf.constant(1.0)
        optimizer.apply(shares, self._model.trainable_variables)
        return {"gradient_norm": norm / scale, "learning_rate": tf.cast(rate, tf.float32), "applied": applied}

    def _step(self, batch, step):
        with never_differentiated():
            measured = self._strategy.run(self.replica_step, args=(batch, step))
        return {name: self._strategy.experimental_local_results(value)[0] for name, value in measured.items()}

    def _alone(self, batch, step):
        return {name: value[None] for name, value in self.compiled(batch, step).items()}

    def _steps(self, batches, step, count):
        first = self.compiled(next(batches), step)
        kept = {name: tf.TensorArray(tf.float32, count, element_shape=value.shape) for name, value in first.items()}
        kept = {name: array.write(0, first[name]) for name, array in kept.items()}

        def body(index, kept):
            measured = self.compiled(next(batches), step + tf.cast(index, tf.int64))
            return index + 1, {name: array.write(index, measured[name]) for name, array in kept.items()}

        _, kept = tf.while_loop(lambda index, _: index < count, body, (tf.constant(1), kept))
        return {name: array.stack() for name, array in kept.items()}


def all_reduce(context, gradients, measured, largest):
    """Returns the sums over all replicas of gradients and measured numbers, and the maxima, the same on each replica.

    One collective does it all: numbers travel in one vector, in which each replica has places of its own for what the
    largest is wanted of.
    """
    replicas = context.num_replicas_in_sync
    if replicas == 1:
        return gradients, measured, largest
    here = tf.one_hot(context.replica_id_in_sync_group, replicas)
    table = {**measured, **{name: value * here for name, value in largest.items()}}
    sizes = [value.shape.num_elements() for value in table.values()]
    vector = tf.concat([tf.reshape(value, [-1]) for value in table.values()], axis=0)
    *gradients, vector = context.all_reduce(tf.distribute.ReduceOp.SUM, [*gradients, vector])
    parts = zip(table.items(), tf.split(vector, sizes), strict=True)
    table = {name: tf.reshape(part, value.shape) for (name, value), part in parts}
    return (
        gradients,
        {name: table[name] for name in measured},
        {name: tf.reduce_max(table[name]) for name in largest},
    )


def global_counts(batch, count_padding):
    """Returns float32 scalars: "tokens" of the targets, and positions that ponder by side.

    They are known from the ids alone, before any forward pass: no collective has to wait for one.

    Args:
        batch: {"inputs", "targets"} ids.
        count_padding: hparam act_count_padding; also then a row of padding alone counts for nothing.
    """
    counts = {"tokens": _count(batch["targets"] != 0)}
    rows = _real_rows(batch["targets"])
    for side, name in (("encoder", "inputs"), ("decoder", "targets")):
        if name in batch:
            real = batch[name] != 0
            if len(real.shape) == 3:  # sentences of words: a sentence is a position
                real = tf.reduce_any(real, axis=-1)
            counts[side] = _count(tf.logical_and(tf.ones_like(real) if count_padding else real, rows[:, None]))
    return counts


def step_seed(seed, step, part):
    """Returns the [2] int32 seed of one step on one part of its batch; a hash, so that no two of them are near."""
    key = tf.constant([seed & 0x7FFFFFFF, seed >> 31], tf.int32)
    key = tf.random.experimental.stateless_fold_in(key, tf.cast(step, tf.int32))
    return tf.random.experimental.stateless_fold_in(key, tf.cast(part, tf.int32))


def _real_rows(targets):
    return tf.reduce_any(targets != 0, axis=-1)


def _count(real):
    return tf.reduce_sum(tf.cast(real, tf.float32))
