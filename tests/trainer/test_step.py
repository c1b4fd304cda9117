"""The training step: global counts, clipping, reproducible dropout, one device as many."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainer import step as steps
from ut_keras import losses
from ut_keras.hparams import Features, HParams
from ut_keras.models.build import build_model

HPARAMS = HParams(
    hidden_size=8,
    filter_size=16,
    num_heads=2,
    recurrence_type="act",
    act_type="accumulated",
    act_max_steps=4,
    act_loss_weight=0.5,
    layer_prepostprocess_dropout=0.0,
    attention_dropout=0.0,
    relu_dropout=0.0,
    learning_rate_schedule="constant",
    learning_rate_constant=0.01,
)
SEQUENCE = Features("sequence", target_vocabulary_size=9, input_vocabulary_size=9)
SENTENCES = Features("class", target_vocabulary_size=9, input_vocabulary_size=9, words_per_sentence=2)
SPEC = {"inputs": tf.TensorSpec([None, None], tf.int32), "targets": tf.TensorSpec([None, None], tf.int32)}
A = ([3, 4, 5, 1], [5, 1, 0])
B = ([6, 1, 0, 0], [2, 7, 1])
EMPTY = ([0, 0, 0, 0], [0, 0, 0])


def batch_of(*examples):
    inputs, targets = zip(*examples, strict=True)
    return {"inputs": tf.constant(inputs, tf.int32), "targets": tf.constant(targets, tf.int32)}


def make(hparams=HPARAMS, features=SEQUENCE, spec=SPEC, on_nan="stop", **options):
    """Returns (model, TrainStep) at their start; the weights are the same each time, and one trace serves all tests."""
    key = (hparams, features, spec is None, on_nan, tuple(options.items()), keras.config.dtype_policy().name)
    if key not in _made:
        keras.utils.set_random_seed(7)
        model = build_model(hparams, features)
        optimizer = steps.make_optimizer(hparams, model, on_nan=on_nan)
        train_step = steps.TrainStep(model, optimizer, hparams, spec, **options)
        variables = [*model.variables, *optimizer.variables]
        _made[key] = model, train_step, variables, [variable.numpy() for variable in variables]
    model, train_step, variables, start = _made[key]
    for variable, value in zip(variables, start, strict=True):
        variable.assign(value)
    return model, train_step


_made = {}


def run(batches, hparams=HPARAMS, **options):
    """Returns (the weights after one step on each batch, the list of what the steps returned)."""
    model, train_step = make(hparams, **options)
    results = [train_step(batch, tf.constant(index, tf.int64)) for index, batch in enumerate(batches)]
    results = [{name: float(value) for name, value in result.items() if not value.shape.rank} for result in results]
    return [weight.numpy() for weight in model.trainable_variables], results


def distance(first, second):
    return max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True))


def test_the_loss_is_the_mean_over_tokens_and_the_ponder_cost_over_positions():
    model, train_step = make()
    batch = batch_of(A, B)
    logits, ponder = model(batch, return_ponder=True)
    cross_entropy, _ = losses.token_cross_entropy_sums(logits, batch["targets"], 0.1)
    cost = sum(np.sum(p.ponder_times + p.remainders) / count for p, count in zip(ponder.values(), (6, 5), strict=True))
    result = train_step(batch, tf.constant(0, tf.int64))
    np.testing.assert_allclose(result["loss"], cross_entropy / 5 + 0.5 * cost, rtol=1e-5)
    assert (float(result["tokens"]), float(result["examples"])) == (5, 2)
    assert (float(result["positions/encoder"]), float(result["positions/decoder"])) == (6, 5)
    assert float(result["ponder_max/encoder"]) == np.max(ponder["encoder"].ponder_times)


def test_an_empty_row_changes_neither_loss_nor_gradient():
    weights, results = run([batch_of(A)])
    padded_weights, padded_results = run([batch_of(A, EMPTY, EMPTY)])
    for name in ("loss", "gradient_norm", "tokens", "right", "ponder_time/encoder", "ponder_time/decoder"):
        assert padded_results[0][name] == pytest.approx(results[0][name], rel=1e-5)
    assert distance(weights, padded_weights) < 2e-5


@pytest.mark.parametrize("count_padding", [False, True])
@pytest.mark.parametrize("kind", ["tokens", "sentences"])
def test_counts_known_from_ids_are_those_of_the_model(count_padding, kind):
    hparams = HPARAMS.override({"act_count_padding": count_padding})
    batch = batch_of(A, B)
    if kind == "sentences":
        hparams = dataclasses.replace(hparams, model="universal_transformer_encoder")
        sentences = [[[3, 4], [5, 0], [0, 0]], [[6, 0], [0, 0], [0, 0]]]
        batch = {"inputs": tf.constant(sentences), "targets": tf.constant([[3], [4]])}
    model = build_model(hparams, SEQUENCE if kind == "tokens" else SENTENCES)
    _, ponder = model(batch, return_ponder=True)
    counts = steps.global_counts(batch, count_padding)
    assert {side: float(count) for side, (_, count) in losses.ponder_sums(ponder).items()} == {
        side: float(counts[side]) for side in ponder
    }


@pytest.mark.parametrize("count_padding", [False, True])
def test_a_row_of_padding_alone_is_not_there_for_counts(count_padding):
    with_row, without = batch_of(A, B, EMPTY), batch_of(A, B)
    counts = [steps.global_counts(batch, count_padding) for batch in (with_row, without)]
    assert [float(counts[0][name]) for name in counts[0]] == [float(counts[1][name]) for name in counts[1]]


@pytest.mark.slow  # compiles training steps of its own
@pytest.mark.parametrize("act_type", ["accumulated", "global"])
def test_parts_of_a_batch_make_the_same_update_also_where_padding_counts(act_type):
    hparams = HPARAMS.override(f"act_type={act_type},act_count_padding=true,clip_grad_norm=0.1")
    hparams = hparams.override("optimizer_adam_epsilon=1e-6")
    batches = [batch_of(A, B, A), batch_of(B)]
    weights, results = run(batches, hparams)
    parts_weights, parts_results = run(batches, hparams, accumulation=2)
    for index in range(2):
        assert parts_results[index] == pytest.approx(results[index], rel=1e-5)
    assert distance(weights, parts_weights) < 1e-5


@pytest.mark.slow  # compiles training steps of its own
def test_several_updates_in_one_call_are_those_of_several_calls():
    hparams = HPARAMS.override("layer_prepostprocess_dropout=0.1")
    batches = [batch_of(A, B), batch_of(B), batch_of(A, A, B), batch_of(B, A), batch_of(A)]
    model, train_step = make(hparams, seed=3)
    single = [train_step(batch, step) for step, batch in enumerate(batches)]
    weights = [weight.numpy() for weight in model.trainable_variables]
    model, train_step = make(hparams, seed=3, several=True)
    source = iter(tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=SPEC))
    several = [train_step.run(source, 0, 3), train_step.run(source, 3, 1), train_step.run(source, 4, 1)]
    for name, value in several[0].items():
        joined = np.concatenate([measured[name] for measured in several])
        np.testing.assert_array_equal(joined, np.stack([measured[name] for measured in single]), err_msg=name)
        assert value.dtype == tf.float32
    assert distance(weights, [weight.numpy() for weight in model.trainable_variables]) == 0.0
    assert train_step._several.experimental_get_tracing_count() == 1


@pytest.mark.slow  # compiles a training step of its own
def test_what_was_pondered_is_counted_by_steps():
    model, train_step = make(HPARAMS.override("act_halting_bias_init=-0.5"))
    batch = batch_of(A, B)
    _, ponder = model(batch, return_ponder=True)
    result = train_step(batch, 0)
    for side, trace in ponder.items():
        real = trace.weights.numpy() > 0
        counts = np.bincount(trace.ponder_times.numpy()[real].astype(int), minlength=5)
        np.testing.assert_array_equal(result[f"ponder_histogram/{side}"], counts)
        probabilities = trace.halting_probability.numpy()[:, real].sum(axis=1)
        np.testing.assert_allclose(result[f"halting_probability/{side}"], probabilities, rtol=1e-5)
        assert 0.0 < probabilities[0] < probabilities[-1] <= real.sum() + 1e-4


@pytest.mark.slow  # compiles a training step of its own
@pytest.mark.parametrize("fault", ["nan", "inf"])
def test_an_update_that_is_not_finite_is_left_out_under_on_nan_skip(fault):
    model, train_step = make(on_nan="skip")
    train_step(batch_of(A, B), 0)
    before = [weight.numpy() for weight in model.trainable_variables]
    broken = model.trainable_variables[0]
    broken.assign(tf.fill(broken.shape, float(fault)))
    result = train_step(batch_of(A, B), 1)
    assert float(result["applied"]) == 0.0
    broken.assign(before[0])
    assert distance(before, [weight.numpy() for weight in model.trainable_variables]) == 0.0
    result = train_step(batch_of(A, B), 2)
    assert float(result["applied"]) == 1.0
    assert distance(before, [weight.numpy() for weight in model.trainable_variables]) > 1e-4


def operations(graph):
    """Returns the types of all operations of a graph and of the functions that it calls."""
    definition = graph.as_graph_def()
    nodes = list(definition.node) + [node for function in definition.library.function for node in function.node_def]
    return {node.op for node in nodes}


@pytest.mark.slow  # compiles a whole step
@pytest.mark.parametrize("accumulation", [1, 2])
@pytest.mark.parametrize("features", [SEQUENCE, SENTENCES], ids=["sequence", "sentences"])
def test_the_whole_update_compiles_for_static_shapes_as_on_a_tpu(features, accumulation):
    """What a TPU would run: the replica's step with clipping and Adam, of static shapes, without a host callback."""
    hparams = HPARAMS.override("clip_grad_norm=0.5,optimizer_adam_epsilon=1e-6")
    batches = [batch_of(A, B, A, EMPTY), batch_of(B, A, EMPTY, EMPTY), batch_of(B, B, A, A)]
    if features is SENTENCES:
        hparams = dataclasses.replace(hparams, model="universal_transformer_encoder")
        sentences = tf.constant([[[3, 4], [5, 0], [0, 0]], [[6, 0], [0, 0], [0, 0]]])
        batches = [{"inputs": sentences, "targets": tf.constant([[3], [4]])}] * 2
    model, plain = make(hparams, features, None, seed=3, accumulation=accumulation)
    expected = [plain(batch, step) for step, batch in enumerate(batches)]
    weights = [weight.numpy() for weight in model.trainable_variables]
    model, train_step = make(hparams, features, None, seed=3, accumulation=accumulation)
    whole = tf.function(train_step.replica_step, jit_compile=True)
    for step, batch in enumerate(batches):
        measured = whole(batch, tf.constant(step, tf.int64))
        for name, value in expected[step].items():
            np.testing.assert_allclose(measured[name], value, rtol=1e-4, atol=1e-6, err_msg=f"{name}, step {step}")
    assert distance(weights, [weight.numpy() for weight in model.trainable_variables]) < 1e-4
    graph = whole.get_concrete_function(batches[0], tf.constant(0, tf.int64)).graph
    found = operations(graph)
    assert {"While", "StatelessWhile"} & found
    assert not {op for op in found if "PyFunc" in op or "Callback" in op or op in ("Print", "PrintV2")}
    assert all(tensor.shape.is_fully_defined() for tensor in graph.inputs if tensor.dtype != tf.resource)


@pytest.mark.slow  # compiles a whole step
def test_the_whole_update_compiles_with_dropout_and_in_half_precision():
    keras.config.set_dtype_policy("mixed_bfloat16")
    _, train_step = make(HPARAMS.override("layer_prepostprocess_dropout=0.5,attention_dropout=0.1"), spec=None, seed=3)
    whole = tf.function(train_step.replica_step, jit_compile=True)
    found = [float(whole(batch_of(A, B), tf.constant(step, tf.int64))["loss"]) for step in (0, 0, 7)]
    assert np.all(np.isfinite(found))
    assert len(set(found)) == 3


@pytest.mark.slow  # traces a model of its own
def test_a_model_that_does_not_halt_has_no_ponder_cost():
    hparams = dataclasses.replace(HPARAMS, recurrence_type="basic", num_rec_steps=3)
    _, results = run([batch_of(A, B)], hparams)
    assert results[0]["loss"] == pytest.approx(results[0]["cross_entropy"] / 5, rel=1e-6)


@pytest.mark.slow  # compiles training steps of its own
def test_the_weight_of_the_ponder_cost_rises_with_the_steps():
    hparams = HPARAMS.override("act_loss_warmup_steps=4,learning_rate_constant=0.0")
    _, results = run([batch_of(A, B)] * 6, hparams)
    base = results[0]["loss"]
    assert base == pytest.approx(results[0]["cross_entropy"] / 5, rel=1e-6)
    rises = [result["loss"] - base for result in results]
    np.testing.assert_allclose(np.divide(rises, rises[4]), [0, 0.25, 0.5, 0.75, 1, 1], rtol=1e-4, atol=1e-6)


@pytest.mark.slow  # compiles training steps of its own
def test_gradients_are_clipped_to_their_global_norm_and_the_norm_before_is_told():
    # With beta1 = 0 and a huge epsilon, Adam's update is proportional to the gradient.
    recipe = "optimizer_adam_beta1=0.0,optimizer_adam_beta2=0.0,optimizer_adam_epsilon=1e6,learning_rate_constant=1e6"
    before, _ = run([])
    free, results = run([batch_of(A, B)], HPARAMS.override(recipe))
    clipped, _ = run([batch_of(A, B)], HPARAMS.override(f"{recipe},clip_grad_norm=0.1"))

    def moved(after):
        return np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(after, before, strict=True)))

    norm = results[0]["gradient_norm"]
    assert norm > 0.1
    assert moved(free) == pytest.approx(norm, rel=1e-3)
    assert moved(clipped) == pytest.approx(0.1, rel=1e-3)


@pytest.mark.slow  # compiles training steps of its own
def test_dropout_is_a_function_of_seed_and_step():
    hparams = HPARAMS.override("layer_prepostprocess_dropout=0.5,learning_rate_constant=0.0")
    _, train_step = make(hparams, seed=1)
    _, other = make(hparams, seed=2)

    def loss(function, step):
        return float(function(batch_of(A, B), tf.constant(step, tf.int64))["loss"])

    losses_ = [loss(train_step, step) for step in range(4)]
    assert len(set(losses_)) == 4
    assert [loss(train_step, step) for step in (3, 1, 2, 0)] == [losses_[step] for step in (3, 1, 2, 0)]
    assert loss(other, 0) != losses_[0]


def test_seeds_of_steps_and_replicas_differ():
    seeds = [
        tuple(steps.step_seed(seed, tf.constant(step, tf.int64), replica).numpy())
        for seed in (0, 1, 2**40)
        for step in range(20)
        for replica in (0, 1)
    ]
    assert len(set(seeds)) == 120


def test_one_trace_serves_every_shape():
    _, train_step = make()
    for rows in (1, 2, 3):
        train_step(batch_of(*[A] * rows), tf.constant(rows, tf.int64))
    train_step({"inputs": tf.ones([2, 9], tf.int32), "targets": tf.ones([2, 5], tf.int32)}, tf.constant(9, tf.int64))
    assert train_step.compiled.experimental_get_tracing_count() == 1


@pytest.mark.slow  # compiles training steps of its own
def test_mixed_float16_scales_the_loss_and_reports_it_unscaled():
    _, plain = run([batch_of(A, B)])
    keras.config.set_dtype_policy("mixed_float16")
    model, train_step = make(HPARAMS.override("clip_grad_norm=0.1"))
    before = [weight.numpy() for weight in model.trainable_variables]
    result = train_step(batch_of(A, B), tf.constant(0, tf.int64))
    assert float(result["loss"]) == pytest.approx(plain[0]["loss"], rel=0.02)
    assert float(result["gradient_norm"]) == pytest.approx(plain[0]["gradient_norm"], rel=0.05)
    assert distance(before, [weight.numpy() for weight in model.trainable_variables]) > 1e-4


@pytest.mark.slow  # compiling takes some 20 seconds
def test_xla_gives_the_same_step():
    weights, results = run([batch_of(A, B)] * 2)
    jit_weights, jit_results = run([batch_of(A, B)] * 2, jit_compile=True)
    assert jit_results[1]["loss"] == pytest.approx(results[1]["loss"], rel=1e-4)
    assert distance(weights, jit_weights) < 1e-4
