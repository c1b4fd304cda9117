"""Parity with tensor2tensor: its golden models through `model_from_t2t`, and its checkpoints.

Tolerances are those of tests/golden/README.md. One forward and backward pass per file serves all tests of it.
"""

import functools
import re
import types

import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files
from ut_keras import losses, optimizers, schedules
from ut_keras.decoding.options import DecodingOptions
from ut_keras.decoding.search import decoder_of, search
from ut_keras.errors import UserError
from ut_keras.tensor2tensor import hparams_from_t2t, model_from_t2t, read_checkpoint
from ut_keras.tensor2tensor_names import named_variables

NAMES = golden_files.model_names("")
CLOSE = {"rtol": 1e-4, "atol": 5e-5}
RECIPE = {"learning_rate_constant": 0.1, "learning_rate_warmup_steps": 4}  # of the golden training runs


def given(probabilities):
    """The halting probabilities of a file of type random, in place of the noise."""
    return lambda state, context, padding_mask, causal, seed, step, *rest: tf.constant(probabilities)[step]


def model_of(golden):
    model = model_from_t2t(golden.meta, golden.under("w"))
    for side, probabilities in golden.under("in/random_p").items():
        getattr(model, side).body.halting.probability = given(probabilities)
    return model


def features_of(golden):
    return {name: tf.constant(value) for name, value in golden.under("in").items() if name in ("inputs", "targets")}


def forward(model, features):
    """(logits, {side: Ponder}, {side: traces}); the traces hold "result", what comes after the closing norm."""
    logits, ponder, traces = model.run(features, trace=True)
    for side, name in (("encoder", "memory"), ("decoder", "states")):
        if side in traces:
            traces[side]["result"] = traces[side][name]
    return logits, ponder, traces


def losses_of(hparams, logits, ponder, targets):
    """(cross-entropy, ponder loss) as T2T weighs them."""
    total, count = losses.token_cross_entropy_sums(logits, targets, hparams.label_smoothing)
    sums = losses.ponder_sums(ponder) if getattr(hparams, "recurrence_type", "") == "act" else {}
    return total / count, hparams.act_loss_weight * sum(one / many for one, many in sums.values())


@functools.cache
def run(name):
    """Everything about a golden file: model, outputs, losses, gradients by T2T's names."""
    golden = golden_files.load(name)
    hparams, model, features = hparams_from_t2t(golden.meta), model_of(golden), features_of(golden)
    variables = named_variables(model, hparams)
    with tf.GradientTape() as tape:
        logits, ponder, traces = forward(model, features)
        xent, act_loss = losses_of(hparams, logits, ponder, features["targets"])
        total = xent + act_loss
    values = [variable.value for variable in variables.values()]
    gradients = dict(zip(variables, tape.gradient(total, values, unconnected_gradients="zero")))
    return types.SimpleNamespace(**{name: value for name, value in locals().items() if name not in ("tape", "values")})


def t2t_name(name):
    return f"{name}_0" if name.endswith("/weights") else name


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_losses(name):
    ours = run(name)
    np.testing.assert_allclose(ours.logits, ours.golden["out/logits"], **CLOSE)
    np.testing.assert_allclose(ours.xent, ours.golden["out/loss_xent"], **CLOSE)
    np.testing.assert_allclose(ours.total, ours.golden["out/loss_total"], **CLOSE)
    if "out/act_loss" in ours.golden:
        np.testing.assert_allclose(ours.act_loss, ours.golden["out/act_loss"], **CLOSE)
        ours.model(ours.features)
        np.testing.assert_allclose(sum(ours.model.losses), ours.golden["out/act_loss"], **CLOSE)


@pytest.mark.parametrize("name", [name for name in NAMES if "ut" in name])
def test_states_of_every_step(name):
    ours, compared = run(name), 0
    for side, trace in ours.traces.items():
        golden = ours.golden.under(f"out/{side}")
        np.testing.assert_allclose(trace["input"], golden["input"], **CLOSE)
        np.testing.assert_allclose(trace["result"], golden["output"], **CLOSE)
        np.testing.assert_allclose(trace["pre_final_norm"], golden["pre_final_norm"], **CLOSE)
        if "step_states" in golden:
            np.testing.assert_allclose(trace["state"], golden["step_states"], **CLOSE)
        compared += 1
    assert compared == (1 if "lm_" in name or "utenc" in name else 2)


@pytest.mark.parametrize("name", [name for name in NAMES if "_act" in name])
def test_halting_of_every_step(name):
    ours = run(name)
    names = {
        "pre_state": "pre_state",
        "p_raw": "probability",
        "state": "state",
        "halting_probability": "halting_probability",
        "remainders": "remainders",
        "n_updates": "ponder_times",
        "new_state": "output",
    }
    for side, trace in ours.traces.items():
        golden = ours.golden.under(f"out/{side}/act_steps")
        steps = int(trace["steps"])
        for theirs, mine in names.items():
            if theirs == "p_raw" and theirs not in golden:
                continue  # type random: the probabilities are an input
            value, expected = trace[mine][:steps].numpy(), golden[theirs]
            if theirs == "p_raw" and "global" in name:  # theirs are from before the mean over the sequence
                expected = expected.mean(axis=-1, keepdims=True) + np.zeros_like(expected)
            elif expected.ndim < value.ndim:  # type global: one number per row
                expected = expected[..., None] + np.zeros_like(value)
            np.testing.assert_allclose(value, expected, **CLOSE, err_msg=f"{side} {theirs}")
        assert len(golden["state"]) == steps


@pytest.mark.parametrize("name", [name for name in NAMES if "_act" in name])
def test_ponder_times_and_remainders(name):
    ours = run(name)
    for side, ponder in ours.ponder.items():
        for what in ("ponder_times", "remainders"):
            expected, value = ours.golden[f"out/{side}/{what}"], getattr(ponder, what).numpy()
            if expected.ndim == 1:
                expected = expected[:, None] + np.zeros_like(value)
            np.testing.assert_allclose(value, expected, **CLOSE)


@pytest.mark.parametrize("name", [name for name in NAMES if name == "models/ut_act_global"])
def test_global_unit_before_the_mean(name):
    ours = run(name)
    for side, trace in ours.traces.items():
        kernel, bias = (weight.numpy() for weight in getattr(ours.model, side).body.halting.weights)
        own = 1 / (1 + np.exp(-(trace["pre_state"].numpy() @ kernel[:, 0] + bias)))
        np.testing.assert_allclose(own[: int(trace["steps"])], ours.golden[f"out/{side}/act_steps/p_raw"], **CLOSE)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_of_every_variable(name):
    ours = run(name)
    golden = ours.golden.under("g")
    assert {t2t_name(one) for one in ours.gradients} == set(golden)
    for one, gradient in ours.gradients.items():
        expected = golden[t2t_name(one)]
        gradient = gradient.numpy().reshape(expected.shape)
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4, err_msg=one)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "models/ut_act_accumulated" else pytest.mark.slow)
        for name in NAMES
        if "train/lr" in golden_files.load(name)
    ],
)
def test_ten_adam_steps(name):
    golden = golden_files.load(name)
    hparams = hparams_from_t2t(golden.meta).override(RECIPE)
    model, features = model_of(golden), features_of(golden)
    optimizer = optimizers.from_hparams(hparams)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits, ponder, _ = model.run(features)
            xent, act_loss = losses_of(hparams, logits, ponder, features["targets"])
            total = xent + act_loss
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(total, [v.value for v in variables], unconnected_gradients="zero"), variables)
        return xent, total

    rates = [float(schedules.from_hparams(hparams)(number)) for number in range(10)]
    np.testing.assert_allclose(rates, golden["train/lr"], rtol=1e-5, atol=1e-9)
    history = np.array([[float(value) for value in step()] for _ in range(10)])
    np.testing.assert_allclose(history[:, 0], golden["train/loss_xent"][:10], atol=2e-3, rtol=0)
    np.testing.assert_allclose(history[:, 1], golden["train/loss_total"][:10], atol=2e-3, rtol=0)
    for one, variable in named_variables(model, hparams).items():
        expected = golden[f"train/final_w/{t2t_name(one)}"]
        weights = variable.numpy().reshape(expected.shape)
        np.testing.assert_allclose(weights, expected, rtol=1e-3, atol=2e-3, err_msg=one)
    np.testing.assert_allclose(step()[1], golden["train/loss_total"][10], atol=2e-3, rtol=0)


INFERRED = [name for name in NAMES if "infer/greedy/outputs" in golden_files.load(name)]
SLOW = pytest.mark.slow
CACHED = pytest.mark.parametrize("cached", [True, pytest.param(False, marks=SLOW)], ids=["cached", "recomputed"])


def inferred(golden, length, **options):
    """The `Hypotheses` of a golden model for its inputs, at most `length` ids each."""
    model, options = model_of(golden), DecodingOptions(**options)
    memory = model.encode({"inputs": tf.constant(golden["in/inputs"])})
    none = tf.zeros([3], tf.int32)
    return search(decoder_of(model, memory, options), tf.zeros([3, 0], tf.int32), none, none + length, options)


@CACHED
@pytest.mark.parametrize("name", INFERRED)
def test_greedy_outputs(name, cached):
    """T2T's greedy search does not stop at the end token in a batch."""
    golden = golden_files.load(name)
    expected = golden["infer/greedy/outputs"].reshape(3, 1, -1)
    coupled = inferred(golden, expected.shape[2], cached=cached, coupled_stop="best")
    np.testing.assert_array_equal(coupled.ids, expected)


@CACHED
@pytest.mark.parametrize("name", [INFERRED[0], *(pytest.param(name, marks=SLOW) for name in INFERRED[1:])])
def test_greedy_outputs_of_ours_end_where_tensor2tensors_say_so(name, cached):
    golden = golden_files.load(name)
    expected = golden["infer/greedy/outputs"].reshape(3, 1, -1)
    uncoupled = inferred(golden, expected.shape[2], cached=cached).ids.numpy()[:, 0]
    for ours, theirs in zip(uncoupled, expected[:, 0]):
        ended = np.flatnonzero(theirs == 1)
        length = ended[0] + 1 if len(ended) else len(theirs)
        np.testing.assert_array_equal(ours[:length], theirs[:length])


@CACHED
@pytest.mark.parametrize(("beam_size", "alpha"), [(4, 0.6), pytest.param(3, 0.0, marks=SLOW)])
@pytest.mark.parametrize("name", INFERRED)
def test_beam_outputs_and_scores(name, beam_size, alpha, cached):
    """Scores below -1e6 stand for hypotheses that do not exist."""
    golden = golden_files.load(name)
    expected = golden.under(f"infer/beam{beam_size}_a{alpha:g}")
    ids, scores = expected["outputs"], expected["scores"]
    options = {"beam_size": beam_size, "n_best": beam_size, "alpha": alpha, "coupled_stop": "all", "cached": cached}
    found = inferred(golden, ids.shape[2], **options)
    real = scores > -1e6
    if not cached:
        # T2T produces padding, which a whole pass of our models leaves out wherever it stands.
        real &= ~np.any(np.cumsum(ids[..., ::-1], axis=2)[..., ::-1] * (ids == 0), axis=(1, 2))[:, np.newaxis]
    np.testing.assert_allclose(found.score.numpy()[real], scores[real], **CLOSE)
    np.testing.assert_array_equal(found.ids.numpy()[real], ids[real])


ACT = golden_files.load("models/ut_act_basic_fc")
KERNEL = "universal_transformer/body/encoder/universal_transformer_act/rec_layer_0/ffn/conv1/kernel"
TABLE = "universal_transformer/symbol_modality_17_16/shared/weights"


def test_a_variable_too_many_too_few_or_misshapen_is_an_error_with_its_name():
    weights = ACT.under("w")
    without = {name: value for name, value in weights.items() if name != KERNEL}
    with pytest.raises(UserError, match=f"variable {KERNEL} is not in the checkpoint"):
        model_from_t2t(ACT.meta, without)
    with pytest.raises(UserError, match=f"variable {KERNEL}s of the checkpoint is not in the model; near names: "):
        model_from_t2t(ACT.meta, {**weights, f"{KERNEL}s": weights[KERNEL]})
    for wrong in (weights[KERNEL].T, weights[KERNEL][:, 1:]):
        shape = re.escape(str(wrong.shape))
        with pytest.raises(UserError, match=rf"variable {KERNEL} has shape {shape}, the model wants \(16, 32\)"):
            model_from_t2t(ACT.meta, {**weights, KERNEL: wrong})


def test_a_missing_shard_is_an_error_with_its_name():
    weights = {**ACT.under("w"), f"{TABLE}_2": ACT["w/" + f"{TABLE}_0"]}
    with pytest.raises(UserError, match=rf"the shards of {TABLE} are not complete: \[0, 2\]"):
        model_from_t2t(ACT.meta, weights)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recurrence_type", "rnn"),
        ("self_attention_type", "dot_product_relative_v2"),
        ("norm_type", "batch"),
        ("attention_key_channels", 64),
    ],
)
def test_what_we_do_not_compute_is_refused_by_name(name, value):
    config = {**ACT.meta, "hp": {**ACT.meta["hp"], name: value}}
    with pytest.raises(UserError, match=f"{name}={value!r}") as error:
        hparams_from_t2t(config)
    assert "\n" not in str(error.value)


def save_checkpoint(path, weights):
    """Writes a TF1 checkpoint as T2T does: the table in 16 row shards, Adam's slots, the step, averages."""
    variables = {name: value for name, value in weights.items() if name != f"{TABLE}_0"}
    shards = np.array_split(weights[f"{TABLE}_0"], 16)
    variables |= {f"{TABLE}_{index}": shard for index, shard in enumerate(shards)}
    slots = {f"training/{name}/{slot}": 0 * value for name, value in variables.items() for slot in ("Adam", "Adam_1")}
    slots |= {f"{name}/Adam": 0 * value for name, value in variables.items()}
    others = {
        "global_step": np.int64(1234),
        "training/beta1_power": np.float32(0.9),
        "losses_avg/problem_0/total_loss": np.float32(3.0),
    }
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in {**variables, **slots, **others}.items():
            tf.compat.v1.get_variable(name, initializer=tf.constant(value), use_resource=False)
        session.run(tf.compat.v1.global_variables_initializer())
        return tf.compat.v1.train.Saver().save(session, str(path / "model.ckpt"), global_step=1234)


def test_a_checkpoint_with_shards_and_slots_loads(tmp_path):
    prefix = save_checkpoint(tmp_path, ACT.under("w"))
    for path in (prefix, str(tmp_path)):
        weights = read_checkpoint(path)
        assert len([name for name in weights if name.startswith(TABLE)]) == 16
        assert all(name.startswith("universal_transformer/") and "Adam" not in name for name in weights)
    logits = model_from_t2t(ACT.meta, weights)(features_of(ACT))
    np.testing.assert_allclose(logits, ACT["out/logits"], **CLOSE)


def test_what_is_no_checkpoint_is_an_error_of_one_line(tmp_path):
    (tmp_path / "model.ckpt-1.index").write_text("no checkpoint")
    for path in (tmp_path / "nothing", tmp_path / "model.ckpt-1"):
        with pytest.raises(UserError, match="is not a checkpoint") as error:
            read_checkpoint(str(path))
        assert "\n" not in str(error.value)
