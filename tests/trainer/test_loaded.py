"""A run directory alone gives the model back."""

import shutil

import numpy as np
import pytest

import trainer
from tests.trainer.saved_runs import STORIES, STRINGS, algorithmic_run, babi_run
from ut_keras.errors import UsageError, UserError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "reverse"
    return path, algorithmic_run(path)


def test_loaded_model_has_the_weights_that_were_saved(run):
    path, model = run
    loaded = trainer.load(path)
    for saved, restored in zip(model.trainable_variables, loaded.model.trainable_variables, strict=True):
        np.testing.assert_array_equal(saved.numpy(), restored.numpy())
    assert loaded.step == 40 and loaded.problem.name == "algorithmic_reverse_decimal40"


def test_generate_answers_every_text_in_order_after_the_directory_has_moved(run, tmp_path):
    expected = trainer.load(run[0]).generate(STRINGS)
    moved = tmp_path / "elsewhere"
    shutil.copytree(run[0], moved)
    loaded = trainer.load(str(moved), checkpoint="last")
    assert loaded.generate(STRINGS) == expected
    assert loaded.generate(STRINGS[::-1], batch_size=1) == expected[::-1]
    assert len(expected) == 5 and expected[1] == expected[4] == ""


def test_an_option_that_does_not_exist_is_refused_with_those_that_do(run):
    with pytest.raises(UsageError, match="no decoding option is called 'beam'; there are beam_size, alpha"):
        trainer.load(run[0]).generate(STRINGS, beam=4)


def test_class_problem_is_loaded_without_its_data(tmp_path):
    babi_run(tmp_path / "babi")
    answers = trainer.load(tmp_path / "babi").generate(STORIES)
    assert len(answers) == 4 and answers[2] == ""


def test_a_checkpoint_can_be_named_by_its_path(run):
    assert trainer.load(run[0], run[0] / "checkpoints" / "ckpt-40").step == 40


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "nowhere", "there is no run directory"),
        (lambda path: path, "is not a run directory"),
    ],
)
def test_what_is_no_run_directory_is_refused(make, message, tmp_path):
    with pytest.raises(UserError, match=message):
        trainer.load(make(tmp_path))


def test_missing_checkpoint_is_named(run):
    with pytest.raises(UserError, match="there is no checkpoint .*ckpt-41"):
        trainer.load(run[0], run[0] / "checkpoints" / "ckpt-41")


def test_weights_of_another_architecture_are_refused(run, tmp_path):
    algorithmic_run(tmp_path / "other", hidden_size=32)
    with pytest.raises(UserError, match="another architecture"):
        trainer.load(run[0], tmp_path / "other" / "checkpoints" / "ckpt-40")
