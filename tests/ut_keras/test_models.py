"""The models: the battery, what training does, saving, depth, and what a notebook does with them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references, tiny_models
from ut_keras import (
    Classifier,
    TokenCrossEntropy,
    Transformer,
    UniversalTransformer,
    UniversalTransformerEncoder,
    UniversalTransformerLM,
)
from ut_keras.layers.halting import AdaptiveComputationTime
from ut_keras.models.transformer import TransformerEncoder

SIZES = {"hidden_size": 4, "num_heads": 2, "filter_size": 8}
NORMS, ATTENTION, FFN, UNIT = 2 * 4, 4 * 4 * 4, 4 * 8 + 8 + 8 * 4 + 4, 4 + 1
ENCODER, DECODER = ATTENTION + FFN + 2 * NORMS, 2 * ATTENTION + FFN + 3 * NORMS
INPUTS = np.array([[3, 5, 2, 4, 1], [4, 2, 1, 0, 0], [6, 1, 0, 0, 0]], "int32")
TARGETS = np.array([[2, 3, 4, 1], [4, 1, 0, 0], [3, 2, 1, 0]], "int32")
BATCH = {"inputs": INPUTS, "targets": TARGETS}


class TestUniversalTransformer(layer_checks.ModelChecks):
    weight_count = 7 * 4 + ENCODER + DECODER + 2 * UNIT

    def make(self, **kwargs):
        halting = AdaptiveComputationTime("frozen", epsilon=0.02)
        return UniversalTransformer(7, halting=halting, max_steps=4, **SIZES, **kwargs)

    def inputs(self, rng):
        return BATCH


class TestEncoder(layer_checks.LayerChecks):
    weight_count = 7 * 4 + ENCODER + NORMS + 3 * 4

    def make(self, **kwargs):
        signal = {"layout": "t2t", "step": "learned"}
        return UniversalTransformerEncoder(7, norm="pre", max_steps=3, signal=signal, **SIZES, **kwargs)

    def inputs(self, rng):
        return {"inputs": INPUTS}

    def real(self, inputs):
        return inputs["inputs"] != 0


@pytest.mark.slow  # the battery of a second model
class TestLanguageModel(layer_checks.ModelChecks):
    weight_count = 2 * 7 * 4 + ATTENTION + FFN + 3 * 4 + 5 * 8 + 3 * NORMS + UNIT

    def make(self, **kwargs):
        options = {"norm": "pre", "transition": "sepconv", "halting": "basic", "shared_embedding": False}
        return UniversalTransformerLM(7, max_steps=3, **options, **SIZES, **kwargs)

    def inputs(self, rng):
        return {"targets": INPUTS}


@pytest.mark.slow  # the battery of a second model
class TestClassifierOfSentences(layer_checks.ModelChecks):
    weight_count = 7 * 4 + 2 * 3 * 4 + ENCODER + UNIT + 4 * 5 + 5

    def make(self, **kwargs):
        options = {"words_per_sentence": 3, "numbering": "end", "halting": "accumulated", "max_steps": 3}
        encoder = UniversalTransformerEncoder(7, **options, **SIZES, **kwargs)
        return Classifier(encoder, num_classes=5, **kwargs)

    def inputs(self, rng):
        sentences = np.zeros([2, 3, 3], "int32")
        sentences[0] = [[3, 4, 0], [5, 2, 3], [2, 1, 0]]
        sentences[1, :1] = [[4, 1, 0]]
        return {"inputs": sentences}

    def real(self, inputs):
        return None

    def labels(self, inputs):
        return np.array([[3], [2]])

    # A row without a sentence has a constant answer, whose loss would count.
    test_empty_row_changes_no_gradient = None


class TestTransformer(layer_checks.ModelChecks):
    weight_count = (7 + 6 + 6) * 4 + ENCODER + DECODER

    def make(self, **kwargs):
        return Transformer(7, 6, shared_embedding=False, max_steps=1, **SIZES, **kwargs)

    def inputs(self, rng):
        return BATCH


OTHERS = ["plain encoder", "plain language model", "plain classifier", "encoder"]


@pytest.mark.parametrize("kind", OTHERS)
def test_models_outside_of_the_battery_save_and_load(kind, tmp_path):
    model, batch = tiny_models.make(kind), tiny_models.rows(kind)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    np.testing.assert_allclose(loaded(batch), model(batch), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OTHERS)
def test_models_outside_of_the_battery_learn(kind):
    model, batch = tiny_models.make(kind), tiny_models.rows(kind)
    labels = (
        np.array([[2], [3], [1], [0]]) if kind.endswith("classifier") else batch.get("targets", batch.get("inputs"))
    )
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=TokenCrossEntropy(), jit_compile=False)
    losses = model.fit(batch, labels, batch_size=4, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.evaluate(batch, labels, batch_size=4, verbose=0) < losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_two_hundred_steps_in_mixed_precision_stay_finite_and_learn(policy):
    model, batch = tiny_models.make("seq2seq", halting="frozen", dtype=policy), tiny_models.rows("seq2seq")
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01))
    model.compile(optimizer=optimizer, loss=TokenCrossEntropy(), jit_compile=False)
    losses = model.fit(batch, batch["targets"], batch_size=4, epochs=200, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses))
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.slow  # compiles or builds several models
def test_a_model_keeps_nothing_between_calls():
    for name in ("frozen", "random", "remat, no step signal"):
        model = tiny_models.make("seq2seq", **tiny_models.OPTIONS[name])
        before = [variable.numpy() for variable in model.variables]
        first = model(BATCH, return_ponder=True)
        model({"inputs": INPUTS[:, :2], "targets": TARGETS}, training=True)
        again = model(BATCH, return_ponder=True)
        for one, other in zip(tf.nest.flatten(first), tf.nest.flatten(again), strict=True):
            np.testing.assert_array_equal(one, other)
        changed = [v.name for v, old in zip(model.variables, before) if not np.array_equal(v.numpy(), old)]
        assert changed == ["seed_generator_state"]


@pytest.mark.slow  # compiles several training steps
def test_dropout_acts_in_training_only_and_follows_the_seed():
    model = tiny_models.make("seq2seq", residual_dropout=0.3, halting="basic")
    np.testing.assert_array_equal(model(BATCH), model(BATCH, training=False))
    seeded = [model(BATCH, training=True, seed=tf.constant(seed)) for seed in ([1, 2], [1, 2], [1, 3])]
    np.testing.assert_array_equal(seeded[0], seeded[1])
    assert np.abs(seeded[0] - seeded[2]).max() > 1e-3
    assert np.abs(model(BATCH, training=True) - model(BATCH, training=True)).max() > 1e-3
    np.testing.assert_array_equal(model(BATCH, seed=tf.constant([1, 2])), model(BATCH))


def test_encoder_and_decoder_have_units_of_their_own_also_when_given_a_layer():
    model = UniversalTransformer(7, halting=AdaptiveComputationTime("accumulated", bias_initializer=-2.0), **SIZES)
    units = [side.body.halting for side in (model.encoder, model.decoder)]
    assert units[0] is not units[1]
    for unit in units:
        assert unit.form == "accumulated"
        assert unit.weights[1].numpy().tolist() == [-2.0]
    assert len({id(weight) for unit in units for weight in unit.weights}) == 4


@pytest.mark.slow  # compiles or builds several models
def test_random_offset_is_one_per_sequence_the_same_on_both_sides_and_in_training_only():
    model = tiny_models.make("seq2seq", random_offset=50)
    rows = {name: np.repeat(value, 6, axis=0) for name, value in BATCH.items()}

    def offsets(seed):
        traces = model.run(rows, seed=seed, trace=True)[2]
        found = {}
        for side, trace in traces.items():
            signal = (trace["pre_state"][0] - trace["input"]).numpy() - references.sinusoids([0], 8, "paper")
            length = signal.shape[1]
            table = [references.sinusoids(range(k, k + length), 8, "paper") for k in range(60)]
            distances = np.abs(signal[:, None] - np.array(table)).max(axis=(2, 3))
            assert distances.min(axis=1).max() < 1e-4
            found[side] = distances.argmin(axis=1)
        np.testing.assert_array_equal(found["encoder"], found["decoder"])
        return found["encoder"]

    drawn = offsets(tf.constant([1, 2]))
    assert len(set(drawn)) > 5
    assert drawn.max() < 50
    assert not np.array_equal(drawn, offsets(tf.constant([1, 3])))
    np.testing.assert_array_equal(offsets(None), np.zeros(18))
    np.testing.assert_array_equal(model(BATCH), model(BATCH))


@pytest.mark.slow  # compiles several training steps
def test_fit_adds_the_ponder_cost_with_its_weight_and_warmup():
    model = tiny_models.make("seq2seq", halting="basic", ponder_weight=0.5, ponder_warmup_steps=4)
    _, ponder = model(BATCH, return_ponder=True)
    cost = 0.0
    for side in ponder.values():
        real = side.weights.numpy() == 1
        cost += (side.ponder_times + side.remainders).numpy()[real].mean()
    np.testing.assert_allclose(model.losses, [0.5 * cost], rtol=1e-5)
    model.compile(optimizer=keras.optimizers.SGD(0.0), loss=TokenCrossEntropy(), jit_compile=False)
    xent = float(TokenCrossEntropy()(TARGETS, model(BATCH)))
    history = model.fit(BATCH, TARGETS, batch_size=3, epochs=6, verbose=0, shuffle=False).history["loss"]
    expected = [xent + 0.5 * min(1, step / 4) * cost for step in range(6)]
    np.testing.assert_allclose(history, expected, rtol=1e-4)


def test_without_halting_there_is_no_ponder_cost():
    model = tiny_models.make("seq2seq")
    logits, ponder = model(BATCH, return_ponder=True)
    assert model.losses == []
    np.testing.assert_array_equal(ponder["encoder"].ponder_times, 4.0 * (INPUTS != 0))
    assert tiny_models.make("plain seq2seq")(BATCH, return_ponder=True)[1] == {}
    assert logits.dtype == tf.float32


@pytest.mark.slow  # compiles or builds several models
def test_a_kernel_regulariser_is_part_of_the_loss_of_a_compiled_step():
    model = tiny_models.make("seq2seq", halting="basic", ponder_weight=0.0)
    kernel = model.encoder.body.blocks[0].ffn._kernel1
    kernel.regularizer = keras.regularizers.L2(0.1)
    penalty = 0.1 * np.sum(kernel.numpy() ** 2)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss=TokenCrossEntropy(), jit_compile=False)
    loss = model.train_on_batch(BATCH, TARGETS)
    expected = float(TokenCrossEntropy()(TARGETS, tiny_models.make("seq2seq", halting="basic")(BATCH))) + penalty
    np.testing.assert_allclose(loss, expected, rtol=1e-4)


def test_parameters_do_not_depend_on_the_number_of_steps():
    assert len({UniversalTransformer(7, max_steps=steps, **SIZES).count_params() for steps in (1, 5)}) == 1
    assert len({Transformer(7, max_steps=steps, **SIZES).count_params() for steps in (1, 5)}) == 2


@pytest.mark.parametrize("kind", ["seq2seq", "language model", "encoder", "classifier"])
def test_a_call_may_run_more_and_fewer_steps(kind):
    batch = tiny_models.rows(kind)
    trained = tiny_models.make(kind, halting="none")
    for depth in (1, 9):
        other = tiny_models.make(kind, halting="none", max_steps=depth)
        other.set_weights(trained.get_weights())
        outputs, ponder = trained(batch, return_ponder=True, max_steps=depth)
        np.testing.assert_allclose(outputs, other(batch), rtol=1e-4, atol=1e-5)
        assert {float(tf.reduce_max(side.ponder_times)) for side in ponder.values()} == {depth}
    with pytest.raises(ValueError, match="a stack of 4 different blocks has no other depth"):
        tiny_models.make(f"plain {kind}")(batch, max_steps=9)


@pytest.mark.slow  # compiles or builds several models
def test_a_shared_table_is_one_variable_also_after_loading(tmp_path):
    model = tiny_models.make("seq2seq")
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=TokenCrossEntropy(), jit_compile=False)
    model.train_on_batch(BATCH, TARGETS)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    tables = [weight for weight in loaded.weights if weight.shape == (9, 8)]
    assert len(tables) == 1
    assert loaded.softmax is loaded.input_embedding is loaded.target_embedding
    assert loaded.count_params() == model.count_params()
    np.testing.assert_allclose(loaded(BATCH), model(BATCH), rtol=1e-6)
    losses = [one.train_on_batch(BATCH, TARGETS) for one in (model, loaded)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    np.testing.assert_allclose(loaded(BATCH), model(BATCH), rtol=1e-4, atol=1e-5)


def test_unshared_tables_are_three_and_shared_ones_need_one_vocabulary():
    model = UniversalTransformer(7, 5, shared_embedding=False, **SIZES)
    shapes = [layer.table.shape for layer in (model.input_embedding, model.target_embedding, model.softmax)]
    assert shapes == [(7, 4), (5, 4), (5, 4)]
    with pytest.raises(ValueError, match="shared_embedding=True needs equal vocabularies, not 7 and 5"):
        UniversalTransformer(7, 5, **SIZES)


def test_an_encoder_runs_in_five_lines_on_an_int_array():
    encoder = UniversalTransformerEncoder(20, halting="frozen", **SIZES)
    states, ponder = encoder(np.array([[5, 6, 7, 0]]), return_ponder=True)
    assert states.shape == (1, 4, 4)
    assert ponder["encoder"].ponder_times.numpy()[0, 3] == 0


def test_facts_numbered_back_from_the_question_move_with_it():
    """The same two sentences in front of which a third was put: their positions are as before."""
    encoder = UniversalTransformerEncoder(9, numbering="end", max_steps=1, **SIZES)
    short = encoder.run(np.array([[5, 6, 0]]), trace=True)[2]["encoder"]
    long = encoder.run(np.array([[7, 5, 6]]), trace=True)[2]["encoder"]
    np.testing.assert_allclose(long["pre_state"][0, 0, 1:], short["pre_state"][0, 0, :2], atol=1e-6)


def test_classifier_is_a_dense_layer_on_the_mean_over_real_positions():
    encoder = TransformerEncoder(7, max_steps=2, **SIZES)
    model = Classifier(encoder, num_classes=3)
    states = encoder(INPUTS).numpy()
    mean = np.array([states[row, :length].mean(axis=0) for row, length in enumerate((5, 3, 2))])
    kernel, bias = model.classes.get_weights()
    np.testing.assert_allclose(model({"inputs": INPUTS}), mean @ kernel + bias, rtol=1e-4, atol=1e-5)


def test_mixed_precision_policy_of_keras_is_taken():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = tiny_models.make("seq2seq", halting="basic")
    logits, ponder = model(BATCH, return_ponder=True)
    assert logits.dtype == tf.float32
    assert model.encode(BATCH)["states"].dtype == tf.bfloat16
    assert ponder["encoder"].remainders.dtype == tf.float32


@pytest.mark.slow  # compiles several training steps
def test_copying_is_learnt_in_a_few_hundred_steps():
    """A wrong tensor returned, a state lost or a halting that learns nothing shows here."""
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 6, 512)
    ids = np.where(np.arange(6) < lengths[:, None], rng.integers(2, 9, [512, 6]), 0)
    ids[np.arange(512), lengths] = 1
    options = {"hidden_size": 32, "num_heads": 4, "filter_size": 64, "max_steps": 4}
    model = UniversalTransformer(9, halting="accumulated", **options)
    model.compile(optimizer=keras.optimizers.Adam(0.003), loss=TokenCrossEntropy(), jit_compile=False)
    model.fit({"inputs": ids, "targets": ids}, ids, batch_size=64, epochs=30, verbose=0)
    guessed = np.argmax(model({"inputs": ids, "targets": ids}), axis=-1)
    assert np.mean(guessed[ids != 0] == ids[ids != 0]) > 0.97
