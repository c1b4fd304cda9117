"""The exported form of a model: what its signature gives, and what it holds."""

import numpy as np
import pytest
import tensorflow as tf

from tests.scripted import Copier, CopyDigits, LastSentence
from ut_keras.decoding.answer import Answer
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError
from ut_keras.serving import TextModel, _along_text

SCORE = 1 - np.log(np.e + 11)  # of one id that `Copier` chooses
OTHER = -np.log(np.e + 11)  # of one that it does not
LOWEST = np.finfo(np.float32).min


def text_model(problem, strength=1.0, **options):
    """A `TextModel` around `Copier`, which is surer of itself the higher `strength` is."""
    model, coders = Copier(), (problem.text_encoder(), problem.text_decoder())
    model.strength.assign(strength)
    return TextModel(model, problem.features, *coders, problem.max_output_length, DecodingOptions(**options))


@pytest.fixture(scope="module")
def copying(tmp_path_factory):
    directory = tmp_path_factory.mktemp("copying")
    text_model(CopyDigits()).save(directory)
    return directory, tf.saved_model.load(str(directory)).signatures["serving_default"]


def test_mixed_lengths_and_an_empty_line_are_answered_in_one_batch(copying):
    found = copying[1](inputs=tf.constant(["3 1 4", "", "1", "5 9 2 6 5 3"]))
    assert [text.decode() for text in found["outputs"].numpy()] == ["3 1 4", "", "1", "5 9 2 6 5 3"]
    np.testing.assert_allclose(found["scores"], np.array([4, 0, 2, 7]) * SCORE, rtol=1e-6)
    np.testing.assert_array_equal(
        found["ponder_times"],
        [[5, 3, 6, 1, 0, 0, 0], [0] * 7, [3, 1, 0, 0, 0, 0, 0], [7, 11, 4, 8, 7, 5, 1]],
    )


def test_signature_has_readable_names_and_open_batch_size(copying):
    function = copying[1]
    (given,) = function.structured_input_signature[1].values()
    assert (given.name, given.dtype, given.shape.as_list()) == ("inputs", tf.string, [None])
    found = {name: (spec.dtype, spec.shape.as_list()) for name, spec in function.structured_outputs.items()}
    assert found == {
        "outputs": (tf.string, [None]),
        "scores": (tf.float32, [None]),
        "ponder_times": (tf.float32, [None, None]),
    }


@pytest.mark.parametrize("lines", [[], [""], ["", ""]])
def test_batch_of_nothing_gives_nothing(copying, lines):
    found = copying[1](inputs=tf.constant(lines, tf.string))
    assert found["outputs"].numpy().tolist() == [b""] * len(lines)
    assert found["scores"].numpy().tolist() == [0.0] * len(lines)


def test_class_model_answers_with_text_and_ponders_sentences(tmp_path):
    text_model(LastSentence()).save(tmp_path)
    found = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](inputs=tf.constant(["3 1. 4 5", "", "7"]))
    assert found["outputs"].numpy().tolist() == [b"4", b"", b"7"]
    np.testing.assert_array_equal(found["ponder_times"], [[5, 6], [0, 0], [9, 0]])


def test_variables_are_saved_once_and_nothing_else_is(copying):
    saved = [name for name, _ in tf.train.list_variables(str(copying[0] / "variables" / "variables"))]
    assert sum("VARIABLE_VALUE" in name for name in saved) == len(Copier().variables)
    assert not any("optimizer" in name or "model" in name for name in saved)


def test_the_model_is_no_part_of_the_module():
    module = text_model(CopyDigits())
    assert not any(isinstance(part, Copier) for part in vars(module).values())


def test_signature_is_told_as_it_is_saved(copying):
    assert text_model(CopyDigits()).signature == {
        "inputs": {"inputs": {"dtype": "string", "shape": [None]}},
        "outputs": {
            "outputs": {"dtype": "string", "shape": [None]},
            "scores": {"dtype": "float32", "shape": [None]},
            "ponder_times": {"dtype": "float32", "shape": [None, None]},
        },
    }


def test_n_best_classes_come_best_first_and_an_empty_line_has_none():
    found = text_model(LastSentence(), n_best=2).serve(tf.constant(["3 1. 4 5", ""]))
    assert found["outputs"].numpy().tolist() == [b"4", b""]
    assert found["n_best_outputs"].shape == (2, 2)
    assert found["n_best_outputs"][:, 0].numpy().tolist() == [b"4", b""]
    np.testing.assert_allclose(found["n_best_scores"][0], [SCORE, OTHER], rtol=1e-6)
    assert found["n_best_scores"][1, 1] == LOWEST


def test_best_of_a_beam_is_the_answer_and_every_score_is_a_number():
    found = text_model(CopyDigits(), strength=9.0, beam_size=3, n_best=2).serve(tf.constant(["3 1 4", ""]))
    assert found["outputs"].numpy().tolist() == [b"3 1 4", b""]
    assert found["n_best_outputs"][:, 0].numpy().tolist() == [b"3 1 4", b""]
    np.testing.assert_allclose(found["n_best_scores"][:, 0], found["scores"])
    assert found["n_best_scores"][0, 1] < found["scores"][0]
    assert np.isfinite(found["n_best_scores"]).all()


def test_sample_of_a_line_is_the_same_wherever_it_stands():
    model = text_model(CopyDigits(), temperature=1.0, seed=3)
    lines = ["3 1 4", "5 9 2 6 5 3", "3 1 4", "2"]
    texts = model.serve(tf.constant(lines))["outputs"].numpy().tolist()
    assert texts[0] == texts[2]
    assert texts[1:2] == model.serve(tf.constant(lines[1:2]))["outputs"].numpy().tolist()


def test_options_that_do_not_fit_are_refused_before_anything_is_traced():
    with pytest.raises(UsageError, match="beam_size"):
        text_model(LastSentence(), beam_size=2)


def test_ponder_times_of_a_continuation_follow_those_of_its_prompt():
    ids = tf.constant([[[7, 1]], [[1, 0]], [[0, 0]]])
    times = {"prompt": [[2.0, 3, 4], [5, 0, 0], [0, 0, 0]], "decoder": [[[6.0, 7]], [[8, 0]], [[0, 0]]]}
    found = Answer(ids, None, None, {side: tf.constant(value) for side, value in times.items()})
    joined = _along_text(found, tf.constant([3, 1, 0]))
    np.testing.assert_array_equal(joined, [[2, 3, 4, 6, 7], [5, 8, 0, 0, 0], [0, 0, 0, 0, 0]])
