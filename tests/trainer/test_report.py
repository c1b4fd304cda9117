"""The end of a training run: scores, examples and the picture."""

import dataclasses
import io
import json
import re

import numpy as np
import pytest

from tests.scripted import Copier, CopyDigits, Grouped, LastSentence
from trainer.eval_json import merge_eval
from trainer.loaded import Loaded
from trainer.report import final_report, parted, ponder_picture
from trainer.tables import table
from ut_keras.hparams import HParams

ACT = HParams(recurrence_type="act")


def _report(problem, hparams, path):
    shown = io.StringIO()
    scores = final_report(Loaded(Copier(), problem, hparams, output_dir=path), out=shown)
    return scores, shown.getvalue()


def test_report_shows_scores_and_examples_beside_what_was_right(tmp_path):
    scores, shown = _report(CopyDigits(), ACT, tmp_path)
    assert re.search("^test/free_running/sequence_accuracy +0.7500$", shown, re.MULTILINE)
    assert "  input   5 8\n  answer  5 8  (wrong)\n  right   5 7\n" in shown
    assert "  input   3 1 4\n  answer  3 1 4\n  right   3 1 4\n" in shown
    assert json.loads((tmp_path / "eval.json").read_text()) == scores
    info = scores["test/info"]
    assert (info["problem"], info["problem_args"], info["step"]) == ("copy_digits", {}, None)
    assert info["versions"].keys() == {"ut_keras", "tensorflow", "keras", "sacrebleu"}
    assert info["decoding"]["beam_size"] == 1 and info["decoding"]["extra_length"] is None
    assert "info" not in shown
    assert "answer  5 8  (wrong)" in (tmp_path / "decodes.txt").read_text()


def test_scores_of_text_are_of_the_whole_split_and_their_signature_is_kept(tmp_path):
    scores, shown = _report(Grouped(), dataclasses.replace(ACT, recurrence_type="basic"), tmp_path)
    assert scores["test/free_running/pairs"] == scores["test/free_running/count"] == 4
    assert scores["test/info"]["signature"] == "a:b"
    assert re.search("^test/info/signature +a:b$", shown, re.MULTILINE)
    assert re.search("^long +2 ", shown, re.MULTILINE)
    merge_eval(tmp_path, {"dev/accuracy": 0.5})
    assert json.loads((tmp_path / "eval.json").read_text()) == {**scores, "dev/accuracy": 0.5}


def test_halting_is_drawn(tmp_path):
    _, shown = _report(CopyDigits(), ACT, tmp_path)
    assert (tmp_path / "ponder.png").read_bytes()[:4] == b"\x89PNG"
    assert str(tmp_path / "ponder.png") in shown


def test_without_halting_nothing_is_drawn(tmp_path):
    _report(CopyDigits(), dataclasses.replace(ACT, recurrence_type="basic"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decodes.txt", "eval.json"]


def test_story_is_drawn_by_sentence_with_the_question_marked(tmp_path):
    loaded = Loaded(Copier(), LastSentence(), ACT, output_dir=tmp_path)
    example = loaded.problem.split("test").example(0)
    from trainer.answers import answer_ids

    axes = ponder_picture(loaded, example, answer_ids(loaded, [example["inputs"]])[0]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["3 1 4", "1 5 9?"]
    assert axes.patches[0].get_facecolor() != axes.patches[1].get_facecolor()
    assert axes.get_title() == "last_sentence: answer '1', right is '1'"


def test_scores_of_another_split_stay_in_eval_json(tmp_path):
    merge_eval(tmp_path, {"dev/accuracy": 0.5, "test/accuracy": 0.1})
    merge_eval(tmp_path, {"test/accuracy": 0.9})
    assert json.loads((tmp_path / "eval.json").read_text()) == {"dev/accuracy": 0.5, "test/accuracy": 0.9}
    assert [path.name for path in tmp_path.iterdir()] == ["eval.json"]


def test_a_damaged_file_of_scores_is_named_and_put_aside_and_does_not_cost_the_new_ones(tmp_path, capsys):
    (tmp_path / "eval.json").write_text('{"dev/acc')
    merge_eval(tmp_path, {"test/accuracy": 0.9})
    assert json.loads((tmp_path / "eval.json").read_text()) == {"test/accuracy": 0.9}
    assert (tmp_path / "eval.json.damaged").read_text() == '{"dev/acc'
    assert "eval.json is damaged" in capsys.readouterr().err


def test_prompt_is_half_of_a_text_or_all_but_the_word_that_counts():
    def lists(ids, scored):
        parts = parted(np.array(ids), scored)
        return parts["inputs"].tolist(), parts["targets"].tolist()

    assert lists([5, 6, 7, 1], "all") == ([5, 6], [7, 1])
    assert lists([5, 6, 7, 1], "last") == ([5, 6], [7, 1])
    assert lists([5, 6, 7, 8, 9], "last") == ([5, 6, 7, 8], [9])
    assert lists([5, 1], "all") == ([5], [1])
    assert lists([1], "last") == lists([1], "all") == ([], [1])


def test_table_aligns_values_and_keeps_counts_whole():
    assert table({"a/count": 12, "a/accuracy": 0.5, "a/p": 1e9, "a/l": 1e-5, "a/z": 0.0}) == (
        "a/count     12\na/accuracy  0.5000\na/p         1.00e+09\na/l         1.00e-05\na/z         0.0000"
    )
    assert table({}) == ""


@pytest.mark.parametrize("problem", [CopyDigits(), LastSentence()])
def test_report_uses_the_evaluator_that_it_is_given(problem, tmp_path):
    from trainer.evaluate import Evaluator

    loaded = Loaded(Copier(), problem, ACT, output_dir=tmp_path)
    evaluator = Evaluator(loaded)
    final_report(loaded, evaluator, out=io.StringIO())
    assert loaded.measure.compiled.experimental_get_tracing_count() == 1
