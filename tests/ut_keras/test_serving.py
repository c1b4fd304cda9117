"""The exported form of a model: what its signature gives, and what it holds."""

import numpy as np
import pytest
import tensorflow as tf

from tests.scripted import Copier, CopyDigits, LastSentence
from ut_keras.serving import TextModel

SCORE = 1 - np.log(np.e + 11)  # of one id that `Copier` chooses


def text_model(problem):
    return TextModel(
        Copier(), problem.features, problem.text_encoder(), problem.text_decoder(), problem.max_output_length
    )


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
