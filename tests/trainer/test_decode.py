"""Lines in, lines out: count, order, empty lines, what is refused and how it is written."""

import io
import json
import sys

import numpy as np
import pytest

from tests.scripted import Copier, CopyDigits, LastSentence
from trainer.decode import decode, decode_lines, pad
from trainer.loaded import Loaded
from ut_keras.errors import UserError


@pytest.fixture(scope="module")
def copying():
    return Loaded(Copier(), CopyDigits())


LINES = ["1 2 3 4 5 6 7", "1", "", "9 9", "   ", "4 5 6", "1 2"]
ANSWERS = ["1 2 3 4 5 6 7", "1", "", "9 9", "", "4 5 6", "1 2"]


def test_answers_come_in_the_order_of_the_lines(copying):
    assert [answer.text for answer in decode_lines(copying, LINES, batch_size=2)] == ANSWERS


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_batch_size_changes_no_answer_and_no_score(copying, batch_size):
    answers = decode_lines(copying, LINES, batch_size=batch_size)
    lengths = np.array([len(answer.split()) + 1 if answer else 0 for answer in ANSWERS])
    assert [answer.text for answer in answers] == ANSWERS
    np.testing.assert_allclose([answer.score for answer in answers], lengths * (1 - np.log(np.e + 11)), rtol=1e-5)


def test_generate_is_decode_in_python(copying):
    assert copying.generate(LINES) == ANSWERS
    assert copying.generate([]) == []
    assert copying.generate([""]) == [""]


def test_answer_is_at_most_extra_length_longer_than_its_input(copying):
    answers = decode_lines(copying, ["1 2 3", "1"], extra_length=0)
    assert [len(answer.ids) for answer in answers] == [4, 2]


def test_ponder_times_cover_the_real_positions_of_both_sides(copying):
    first, _, empty = decode_lines(copying, ["1 2", "1 2 3 4", ""], with_ponder=True)
    np.testing.assert_array_equal(first.ponder_times["encoder"], [3, 4, 1])
    np.testing.assert_array_equal(first.ponder_times["decoder"], [3, 4, 1])
    assert len(empty.ponder_times["encoder"]) == len(empty.ponder_times["decoder"]) == 0


def test_class_problem_answers_with_one_word():
    answers = decode_lines(Loaded(Copier(), LastSentence()), ["3 1 4. 1 5 9", "", "8. 2"], with_ponder=True)
    assert [answer.text for answer in answers] == ["1", "", "2"]
    np.testing.assert_array_equal(answers[0].ponder_times["encoder"], [5, 3])


def test_a_token_outside_of_the_vocabulary_is_refused_with_its_line(copying):
    with pytest.raises(UserError, match="^line 2: copy_digits: 'x' is not one of 0 to 9$"):
        decode_lines(copying, ["1", "2 x"])


def test_file_to_file_makes_the_folder_and_keeps_the_number_of_lines(copying, tmp_path, capsys):
    source, target = tmp_path / "in.txt", tmp_path / "new" / "folder" / "out.txt"
    source.write_bytes("\ufeff1 2\n\n3\r\n4 5".encode())
    decode(copying.problem, lambda: copying, str(source), str(target))
    assert target.read_bytes() == b"1 2\n\n3\n4 5\n"
    shown = capsys.readouterr()
    assert shown.out == "" and str(target) in shown.err and "answered 4 lines, 1 of them with nothing" in shown.err


def test_standard_input_to_standard_output(copying, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 2\n3\n")))
    decode(copying.problem, lambda: copying)
    assert capsys.readouterr().out == "1 2\n3\n"


def test_refused_line_is_found_before_a_model_is_loaded_and_leaves_no_file_behind(tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("1\n2\nGoodbye\n")
    with pytest.raises(UserError, match="in.txt, line 3: .*'Goodbye'"):
        decode(CopyDigits(), pytest.fail, str(source), str(target))
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_scores_and_ponder_times_are_one_json_object_per_line(copying, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("1 2\n\n")
    decode(copying.problem, lambda: copying, str(source), str(target), with_scores=True, with_ponder=True)
    first, second = (json.loads(line) for line in target.read_text().splitlines())
    assert first == {
        "input": "1 2",
        "output": "1 2",
        "score": pytest.approx(3 * (1 - np.log(np.e + 11)), abs=1e-5),
        "ponder_times": {"encoder": [3.0, 4.0, 1.0], "decoder": [3.0, 4.0, 1.0]},
    }
    assert second == {"input": "", "output": "", "score": 0.0, "ponder_times": {"encoder": [], "decoder": []}}


def test_padding_goes_behind_in_every_dimension():
    np.testing.assert_array_equal(pad([np.array([1]), np.array([2, 3])]), [[1, 0], [2, 3]])
    np.testing.assert_array_equal(pad([np.ones([1, 2]), np.zeros([0, 2])]), [[[1, 1]], [[0, 0]]])
    assert pad([np.zeros([0])]).shape == (1, 1)


def test_one_text_in_place_of_a_list_is_refused(copying):
    with pytest.raises(UserError, match="a list of texts, not one"):
        copying.generate("1 2 3")


def test_a_place_that_cannot_be_written_is_refused_before_a_model_is_loaded(tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("1\n")
    for target in (tmp_path, source / "out.txt"):
        with pytest.raises(UserError, match="cannot write"):
            decode(CopyDigits(), pytest.fail, str(source), str(target))


def test_what_is_left_out_of_a_line_is_said_with_its_number(copying, capsys, monkeypatch):
    monkeypatch.setattr(CopyDigits, "cut", lambda self, text: "too long" if len(text) > 4 else "")
    decode_lines(copying, ["1", "1 2 3"])
    assert capsys.readouterr().err == "warning: line 2: too long\n"
