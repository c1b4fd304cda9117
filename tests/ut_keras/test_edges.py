"""What a notebook user meets at the edges: wrong values are refused by name, lists are ids, nothing is ignored."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ut_keras
from ut_keras.errors import UserError
from ut_keras.layers.embedding import TokenEmbedding
from ut_keras.layers.transition import Transition

SIZES = {"hidden_size": 8, "num_heads": 2, "filter_size": 16, "max_steps": 3}


def encoder(**options):
    return ut_keras.UniversalTransformerEncoder(20, **{**SIZES, **options})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"numbering": "begin"}, "numbering='begin'"),
        ({"step_length": "tru"}, "step_length='tru'"),
        ({"head": "token"}, "head='token'"),
        ({"num_heads": 3}, "num_heads=3"),
        ({"max_steps": 0}, "max_steps=0"),
        ({"residual_dropout": 1.0}, "dropout rate 1.0"),
        ({"halting": "sometimes"}, "'sometimes'"),
        ({"norm": "middle"}, "norm='middle'"),
        ({"transition": "conv"}, "'conv'"),
        ({"signal": {"layout": "rows"}}, "layout='rows'"),
    ],
)
def test_a_wrong_value_is_refused_by_name(options, named):
    with pytest.raises(ValueError, match=named.replace("(", r"\(")):
        encoder(**options)(np.array([[5, 6]]), training=True)


def test_global_over_is_checked():
    with pytest.raises(ValueError, match="global_over='prefx'"):
        ut_keras.AdaptiveComputationTime("global", global_over="prefx")


def test_a_stack_of_blocks_has_no_step_signal():
    with pytest.raises(ValueError, match="shift_by_step"):
        ut_keras.TransformerEncoder(20, **SIZES, signal={"shift_by_step": True})


def test_sentences_and_tokens_are_told_apart():
    with pytest.raises(ValueError, match="words_per_sentence is None"):
        encoder()(np.ones([1, 2, 3], "int32"))
    with pytest.raises(ValueError, match="sentences"):
        encoder(words_per_sentence=3)(np.ones([1, 3], "int32"))


def test_sentences_are_numbered_back_from_the_question_unless_said():
    assert encoder(words_per_sentence=3).encoder.numbering == "end"
    assert encoder(words_per_sentence=3, numbering="start").encoder.numbering == "start"
    assert encoder().encoder.numbering == "start"


@pytest.mark.parametrize("kind", ["uint8", "int64", list])
def test_ids_may_be_lists_or_any_integers(kind):
    model = encoder()
    rows = [[5, 6, 7, 0]]
    ids = rows if kind is list else np.array(rows, kind)
    np.testing.assert_array_equal(model(ids), model(np.array(rows, "int32")))
    np.testing.assert_array_equal(model({"inputs": ids}), model(np.array(rows, "int32")))


def test_ids_outside_of_the_vocabulary_do_not_pass_for_others():
    model = ut_keras.UniversalTransformer(20, **SIZES)
    for bad in (20, -1):
        with pytest.raises(UserError, match=f"id {bad} is outside of the vocabulary of 20"):
            model.generate([[5, bad]])
    compiled = tf.function(TokenEmbedding(20, 8), jit_compile=True)
    assert np.isnan(compiled(tf.constant([[3, 25]])).numpy()[0, 1]).all()
    assert np.isfinite(compiled(tf.constant([[3, 19]]))).all()


@pytest.mark.parametrize(
    ("ids", "max_length", "message"),
    [
        ([[5.5, 6.0]], 3, "ids of type float64 are not all whole numbers"),
        ([[5, 2**32 + 6]], 3, "id 4294967302 is outside of the vocabulary"),
        ([5, 6], 3, r"ids of shape \(2,\): a batch is \[B, L\], one row alone \[1, L\]"),
        ([[5, 6]], 2.5, "max_length of type float64 are not all whole numbers"),
        ([[5, 6]], -1, "max_length=-1 is not between 0 and 1073741824"),
        ([[5, 6]], [3, 2**31 - 1], "max_length of shape"),
        ([[5, 6]], 2**31 - 1, "max_length=2147483647 is not between 0 and"),
        ([[0, 5]], 3, "a prefix has padding .* pad on the right"),
    ],
)
def test_generate_refuses_what_would_silently_become_something_else(ids, max_length, message):
    """Cut to integers, wrapped around 2^31 (a limit so that nothing was made), or read as a prefix of zeros."""
    with pytest.raises(UserError, match=message):
        ut_keras.UniversalTransformerLM(20, **SIZES).generate(ids, max_length=max_length)


def test_no_positions_at_all_keep_their_rows():
    """A static length of 0 left the batch open in a reshape, which made 1 of 2 rows."""
    ids = np.zeros([2, 0], "int32")
    assert ut_keras.UniversalTransformerLM(20, **SIZES)(ids).shape == (2, 0, 20)
    for sentences, shape in ((None, [2, 0]), (3, [2, 0, 3])):
        lstm = ut_keras.LSTMSeq2Seq(20, hidden_size=4, num_layers=1, words_per_sentence=sentences)
        assert lstm.generate(np.zeros(shape), max_length=3).tolist() == [[0], [0]]


def test_an_encoder_alone_does_not_answer():
    with pytest.raises(UserError, match="Classifier"):
        encoder().generate([[5, 6]])


def test_generate_obeys_max_steps_for_classes():
    keras.utils.set_random_seed(3)
    model = ut_keras.Classifier(encoder(max_steps=6), 9)
    ids = np.random.default_rng(0).integers(2, 20, [40, 5])
    for steps in (1, 6):
        expected = 1 + np.argmax(model(ids, max_steps=steps)[:, 1:], axis=-1)
        np.testing.assert_array_equal(model.generate(ids, max_steps=steps)[:, 0], expected)
    assert np.any(model.generate(ids, max_steps=1) != model.generate(ids))


def test_an_end_token_inside_of_a_prefix_does_not_end_the_row():
    model = ut_keras.UniversalTransformerLM(20, **SIZES)
    assert model.generate([[5, 1, 6, 7]], max_length=2)[0, :4].tolist() == [5, 1, 6, 7]


def test_xla_is_off_unless_asked_for_also_with_one_gpu(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: ["a GPU"] if kind == "GPU" else [])
    model = encoder(head="tokens")
    model.compile("adam", ut_keras.TokenCrossEntropy())
    assert model.jit_compile is False


@pytest.mark.slow  # traces a model of its own
def test_a_compiled_model_is_loaded_compiled(tmp_path):
    model = encoder(head="tokens")
    ids = np.array([[5, 6, 7, 0]])
    model.compile("adam", ut_keras.TokenCrossEntropy(0.1))
    model.fit(ids, ids, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert int(loaded.optimizer.iterations) == 2
    np.testing.assert_allclose(loaded.evaluate(ids, ids, verbose=0), model.evaluate(ids, ids, verbose=0), rtol=1e-6)


def test_metrics_weigh_single_tokens():
    targets, logits = np.array([[1, 1, 2]]), np.array([[[0.0, 9, 0], [0, 0, 9], [0, 9, 0]]])
    metric = ut_keras.TokenAccuracy()
    metric.update_state(targets, logits, sample_weight=np.array([[1.0, 0, 0]]))
    assert float(metric.result()) == 1.0
    with pytest.raises(ValueError, match="measures examples"):
        ut_keras.SequenceAccuracy().update_state(targets, logits, sample_weight=np.ones([1, 3]))


def test_modules_are_reached_from_the_package():
    assert callable(ut_keras.tensor2tensor.model_from_t2t)
    assert callable(ut_keras.plots.ponder_times)


@pytest.mark.parametrize("layer", [lambda d: TokenEmbedding(20, 8, dtype=d), lambda d: Transition(8, dtype=d)])
def test_sums_of_many_gradients_do_not_stick_in_bfloat16(layer):
    def gradients(policy):
        keras.utils.set_random_seed(1)
        one = layer(policy)
        x = tf.ones([40, 50], tf.int32) if isinstance(one, TokenEmbedding) else tf.ones([40, 50, 4])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(one(x), tf.float32))
        return [tf.cast(tf.convert_to_tensor(g), tf.float32) for g in tape.gradient(loss, one.trainable_variables)]

    for half, full in zip(gradients("mixed_bfloat16"), gradients("float32"), strict=True):
        np.testing.assert_allclose(half, full, rtol=0.03, atol=1.0)
