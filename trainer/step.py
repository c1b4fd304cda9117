"""The training step, written once for one device and for many.

Each replica takes its rows of the global batch, adds up losses over them and divides by the counts of
the *global* batch; the sum over replicas is then the loss of the batch, however its rows were dealt.

Shapes: B examples of the global batch, L source length (S sentences of W words where inputs are
[B, S, W]), M target length; both count the end token. R replicas.
"""

import keras
import tensorflow as tf

from ut_keras import losses, metrics, optimizers


def make_optimizer(hparams, model):
    """Returns the built optimizer of `model`, made under the strategy's scope; it scales the loss in mixed_float16."""
    optimizer = optimizers.from_hparams(hparams)
    if keras.config.dtype_policy().name == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(model.trainable_variables)
    return optimizer


def make_train_step(model, optimizer, hparams, batch_spec, strategy=None, seed=0, jit_compile=False):
    """Returns the compiled function that makes one update of the weights.

    Args:
        model: a model of `ut_keras`, built under the strategy's scope.
        optimizer: what `make_optimizer` returned.
        hparams: label_smoothing, act_loss_weight, act_loss_warmup_steps, act_count_padding and
            clip_grad_norm are read.
        batch_spec: {"inputs", "targets"} of TensorSpecs, dimensions None: one trace serves all shapes.
        strategy: a `tf.distribute` strategy; None is the current one.
        seed: seed of the run. Dropout is a function of (seed, step), so that a resumed run repeats nothing.
        jit_compile: compile forward and backward pass with XLA, once per batch shape.

    Returns:
        A function of (batch, step): batch {"inputs": [B, L] or [B, S, W] int32, "targets": [B, M] int32}
        is the *global* batch, step an int64 scalar, 0 before the first update. It returns a dict of
        scalars over the global batch: "loss" (what is minimised), "gradient_norm" (before clipping),
        sums "cross_entropy", "right" and their count "tokens", "examples", and for each side that
        ponders the sum "ponder_time/<side>", its count "positions/<side>" and "ponder_max/<side>".
    """
    strategy = strategy or tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    variables = model.trainable_variables

    def forward_backward(batch, counts, act_weight, dropout_seed):
        with tf.GradientTape() as tape:
            logits, ponder = model(batch, training=True, return_ponder=True, seed=dropout_seed)
            cross_entropy, _ = losses.token_cross_entropy_sums(logits, batch["targets"], hparams.label_smoothing)
            loss = losses.mean(cross_entropy, counts["tokens"])
            if hparams.recurrence_type == "act":
                for side, (cost, _) in losses.ponder_sums(ponder).items():
                    loss += act_weight * losses.mean(cost, counts[side])
            scaled = optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, variables, unconnected_gradients="zero")
        right, _ = metrics.sums(logits, batch["targets"])["accuracy"]
        measured = {"loss": loss, "cross_entropy": cross_entropy, "right": right}
        largest = {}
        for side, trace in ponder.items():
            measured[f"ponder_time/{side}"] = tf.reduce_sum(trace.ponder_times * trace.weights)
            measured[f"positions/{side}"] = tf.reduce_sum(trace.weights)
            largest[f"ponder_max/{side}"] = tf.reduce_max(trace.ponder_times * trace.weights)
        return [tf.convert_to_tensor(gradient) for gradient in gradients], measured, largest

    if jit_compile:
        forward_backward = tf.function(forward_backward, jit_compile=True)

    def replica_step(batch, step):
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group
        counts = global_counts(batch, hparams.act_count_padding)
        mine = {name: deal(ids, replica, replicas) for name, ids in batch.items()}
        act_weight = tf.constant(hparams.act_loss_weight, tf.float32)
        if hparams.act_loss_warmup_steps:
            act_weight *= tf.minimum(1.0, tf.cast(step, tf.float32) / hparams.act_loss_warmup_steps)
        dropout_seed = step_seed(seed, step, replica)
        gradients, measured, largest = forward_backward(mine, counts, act_weight, dropout_seed)
        if replicas > 1:
            gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        scale = optimizer.scale_loss(1.0)  # gradients are still multiplied by it
        norm = tf.linalg.global_norm(gradients)
        if hparams.clip_grad_norm:
            gradients, _ = tf.clip_by_global_norm(gradients, hparams.clip_grad_norm * scale, use_norm=norm)
        # Keras adds the gradients up over replicas, which has been done.
        optimizer.apply([gradient / replicas for gradient in gradients] if replicas > 1 else gradients, variables)
        return measured, largest, {"gradient_norm": norm / scale}

    @tf.function(input_signature=[batch_spec, tf.TensorSpec([], tf.int64)])
    def train_step(batch, step):
        measured, largest, same = strategy.run(replica_step, args=(batch, step))
        result = {name: strategy.reduce("SUM", value, axis=None) for name, value in measured.items()}
        for name, value in largest.items():
            result[name] = tf.reduce_max(tf.stack(strategy.experimental_local_results(value)))
        for name, value in same.items():
            result[name] = strategy.experimental_local_results(value)[0]
        result["tokens"] = global_counts(batch, False)["tokens"]
        result["examples"] = tf.cast(tf.shape(batch["targets"])[0], tf.float32)
        return result

    return train_step


def global_counts(batch, count_padding):
    """Returns float32 scalars: "tokens" of the targets, and positions that ponder by side.

    They are known from the ids alone, before any forward pass: no collective has to wait for one.

    Args:
        batch: {"inputs", "targets"} ids.
        count_padding: hparam act_count_padding.
    """
    counts = {"tokens": _count(batch["targets"] != 0)}
    for side, name in (("encoder", "inputs"), ("decoder", "targets")):
        if name in batch:
            real = batch[name] != 0
            if len(real.shape) == 3:  # sentences of words: a sentence is a position
                real = tf.reduce_any(real, axis=-1)
            counts[side] = _count(tf.ones_like(real) if count_padding else real)
    return counts


def deal(ids, replica, replicas):
    """Returns the rows of one replica: every `replicas`-th. All get the same number; what is missing is padding."""
    if replicas == 1:
        return ids
    missing = -tf.shape(ids)[0] % replicas
    padded = tf.pad(ids, [[0, missing]] + [[0, 0]] * (len(ids.shape) - 1))
    return padded[replica::replicas]


def step_seed(seed, step, replica):
    """Returns the [2] int32 seed of one step on one replica; a hash, so that no two of them are near."""
    key = tf.constant([seed & 0x7FFFFFFF, seed >> 31], tf.int32)
    key = tf.random.experimental.stateless_fold_in(key, tf.cast(step, tf.int32))
    return tf.random.experimental.stateless_fold_in(key, tf.cast(replica, tf.int32))


def _count(real):
    return tf.reduce_sum(tf.cast(real, tf.float32))
