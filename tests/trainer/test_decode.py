"""Lines in, lines out: count, order, empty and broken lines, windows, and how it is written."""

import io
import json
import sys

import numpy as np
import pytest

from tests.scripted import Copier, CopyDigits, LastSentence
from trainer import decode as decoding
from trainer import windows
from trainer.decode import decode, decode_lines
from trainer.loaded import Loaded
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError, UserError
from ut_keras.registry import hparams_sets

RIGHT = 1 - np.log(np.e + 11)  # log-probability of a copied token


@pytest.fixture(scope="module")
def copying():
    return Loaded(Copier(), CopyDigits())


LINES = ["1 2 3 4 5 6 7", "1", "", "9 9", "   ", "4 5 6", "1 2"]
ANSWERS = ["1 2 3 4 5 6 7", "1", "", "9 9", "", "4 5 6", "1 2"]


@pytest.fixture
def answer(copying, tmp_path):
    """Function (bytes of a file, options) -> (bytes of the answers, lines that could not be answered)."""

    def run(data, **options):
        (tmp_path / "in").write_bytes(data)
        faults = decode(copying.problem, lambda: copying, str(tmp_path / "in"), str(tmp_path / "out"), **options)
        return (tmp_path / "out").read_bytes(), faults

    return run


def _standard_input(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_batch_size_changes_no_answer_and_no_score(copying, batch_size):
    answers = decode_lines(copying, LINES, batch_size=batch_size)
    lengths = np.array([len(answer.split()) + 1 if answer else 0 for answer in ANSWERS])
    assert [answer.text for answer in answers] == ANSWERS
    np.testing.assert_allclose([answer.score for answer in answers], lengths * RIGHT, rtol=1e-5)


def test_answer_is_at_most_extra_length_longer_than_its_input_and_below_the_cap(copying):
    answers = decode_lines(copying, ["1 2 3", "1"], extra_length=0)
    assert [len(answer.ids) for answer in answers] == [4, 2]
    answers = decode_lines(copying, ["1 2 3", "1"], extra_length=0, max_output_length=3)
    assert [len(answer.ids) for answer in answers] == [3, 2]


def test_ponder_times_cover_the_real_positions_of_both_sides(copying):
    first, _, empty = decode_lines(copying, ["1 2", "1 2 3 4", ""])
    np.testing.assert_array_equal(first.ponder_times["encoder"], [3, 4, 1])
    assert len(first.ponder_times["decoder"]) == 3
    assert len(empty.ponder_times["encoder"]) == len(empty.ponder_times["decoder"]) == 0


def test_class_problem_answers_with_one_word():
    answers = decode_lines(Loaded(Copier(), LastSentence()), ["3 1 4. 1 5 9", "", "8. 2"])
    assert [answer.text for answer in answers] == ["1", "", "2"]
    np.testing.assert_array_equal(answers[0].ponder_times["encoder"], [5, 3])


def test_in_python_a_line_that_cannot_be_encoded_is_refused_with_its_number(copying):
    with pytest.raises(UserError, match="^line 2: copy_digits: 'x' is not one of 0 to 9$"):
        decode_lines(copying, ["1", "2 x"])


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_file_to_file_keeps_the_number_of_lines_with_and_without_a_final_newline(copying, tmp_path, capsys, end):
    source, target = tmp_path / "in.txt", tmp_path / "new" / "folder" / "out.txt"
    source.write_bytes("\ufeff1 2\n\n3\r\n4 5".encode() + end)
    assert decode(copying.problem, lambda: copying, str(source), str(target)) == 0
    assert target.read_bytes() == b"1 2\n\n3\n4 5\n"
    shown = capsys.readouterr()
    assert shown.out == "" and f"wrote {target}" in shown.err
    assert "answered 4 lines, 1 of them with nothing (" in shown.err
    assert " lines/s, " in shown.err and " tokens/s)" in shown.err


def test_standard_input_to_standard_output(copying, monkeypatch, capsys):
    _standard_input(monkeypatch, b"1 2\n3\n")
    assert decode(copying.problem, lambda: copying) == 0
    assert capsys.readouterr().out == "1 2\n3\n"


def test_line_that_cannot_be_answered_is_empty_and_the_others_are_answered(answer, capsys):
    data = b"1\n2 x\n\xff3\n4 5\n" + b"7 " * 30 + b"\n" + b"9" * 2**21 + b"\n6\n"
    answers, faults = answer(data, max_input_length=20)
    assert answers.decode().split("\n") == ["1", "", "", "4 5", "", "", "6", ""]
    assert faults == 4
    lines = capsys.readouterr().err.splitlines()
    warnings = [line.partition("in, line ")[2] for line in lines if line.startswith("warning: ")]
    assert warnings == [
        "2: copy_digits: 'x' is not one of 0 to 9; answered with nothing",
        "3: byte 0xff at offset 6 is not UTF-8; answered with nothing",
        "5: it has 31 tokens, more than max_input_length=20; raise that where memory allows; answered with nothing",
        "6: it is longer than 1,048,576 bytes; answered with nothing",
    ]
    assert "4 of 7 lines could not be answered" in lines


def test_line_that_cannot_be_answered_says_why_in_json(answer):
    answers, faults = answer(b"1\n2 x\n\xff3\n", with_scores=True)
    records = [json.loads(line) for line in answers.splitlines()]
    assert faults == 2 and [record["output"] for record in records] == ["1", "", ""]
    assert records[1] == {"input": "2 x", "output": "", "error": "copy_digits: 'x' is not one of 0 to 9"}
    assert records[2]["input"] == "\ufffd3" and "byte 0xff at offset 6" in records[2]["error"]
    assert "error" not in records[0]


def test_warnings_end_and_the_count_goes_on(answer, capsys, monkeypatch):
    monkeypatch.setattr("trainer.line_encoder.WARNINGS", 2)
    assert answer(b"x\n" * 5 + b"1\n") == (b"\n" * 5 + b"1\n", 5)
    err = capsys.readouterr().err
    assert err.count("is not one of") == 2 and "further ones are counted and not shown" in err
    assert "5 of 6 lines could not be answered" in err


def test_warnings_of_lines_that_are_cut_end_and_are_counted_with_the_others(answer, capsys, monkeypatch):
    monkeypatch.setattr("trainer.line_encoder.WARNINGS", 2)
    monkeypatch.setattr(CopyDigits, "cut", lambda self, text: "too long" if len(text) > 4 else "")
    assert answer(b"x\n" + b"1 2 3\n" * 4) == (b"\n" + b"1 2 3\n" * 4, 1)
    err = capsys.readouterr().err
    assert err.count("too long") == 1 and "further ones are counted and not shown" in err
    assert "4 of 5 lines were cut" in err and "1 of 5 lines could not be answered" in err


def test_output_that_is_not_finite_is_no_answer(tmp_path, capsys):
    run = Loaded(Copier(), CopyDigits())
    run.model.strength.assign(np.nan)
    files = [str(tmp_path / name) for name in ("in", "out")]
    (tmp_path / "in").write_bytes(b"1\n\n2\n")
    assert decode(run.problem, lambda: run, *files) == 2
    assert (tmp_path / "out").read_bytes() == b"\n\n\n"
    err = capsys.readouterr().err
    assert "in, line 3: the model's output is not finite: take another --checkpoint; answered with nothing" in err
    assert decode(run.problem, lambda: run, *files, with_scores=True) == 2
    assert "not finite" in json.loads((tmp_path / "out").read_text().splitlines()[0])["error"]
    with pytest.raises(UserError, match="^text 2: the model's output is not finite"):
        run.generate(["", "1"])


def test_windows_change_nothing(answer, monkeypatch):
    rng = np.random.default_rng(1)
    lines = [" ".join(map(str, rng.integers(0, 10, rng.integers(0, 9)))) for _ in range(100)]
    lines[7], data = "x", None
    data = "".join(line + "\n" for line in lines).encode()
    samples = DecodingOptions(temperature=1.0, seed=3)
    whole = [answer(data, options=options) for options in (None, samples)]
    lines[7] = ""
    assert whole[0] == ("".join(line + "\n" for line in lines).encode(), 1)
    monkeypatch.setattr(decoding, "FIRST", 8)
    monkeypatch.setattr(decoding, "MOST", 16)
    assert [answer(data, batch_size=3, options=options) for options in (None, samples)] == whole
    assert whole[1] != whole[0]


def test_answers_of_a_window_are_out_before_the_next_is_read(copying, monkeypatch):
    monkeypatch.setattr(decoding, "FIRST", 2)
    out, seen = io.StringIO(), []

    class Slow(io.BytesIO):
        def readline(self, *limit):
            seen.append(out.getvalue().count("\n"))
            return super().readline(*limit)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Slow(b"1\n2\n3\n4\n5\n6\n7\n8\n")))
    monkeypatch.setattr(sys, "stdout", out)
    decode(copying.problem, lambda: copying, batch_size=2)
    assert seen[:7] == [0, 0, 2, 2, 2, 2, 6]
    assert out.getvalue() == "1\n2\n3\n4\n5\n6\n7\n8\n"


def test_interactive_answers_each_line_at_once_with_a_prompt(copying, monkeypatch, capsys):
    _standard_input(monkeypatch, b"1 2\nx\n\n3")
    assert decode(copying.problem, lambda: copying, interactive=True) == 1
    out, err = capsys.readouterr()
    assert out == "1 2\n\n\n3\n"
    assert err.startswith("one line, one answer; Ctrl-D ends\n> > warning: line 2: copy_digits: 'x'")
    assert err.count("> ") == 5 and "answered 4 lines" in err


def test_limit_reads_no_further(copying, monkeypatch, capsys, answer):
    assert answer(b"1\n2\n3\n", limit=2) == (b"1\n2\n", 0)
    _standard_input(monkeypatch, b"1\n2\n3\n")
    decode(copying.problem, lambda: copying, limit=1, interactive=True)
    assert capsys.readouterr().out == "1\n" and sys.stdin.buffer.readline() == b"2\n"


def test_scores_and_ponder_times_are_one_json_object_per_line(answer):
    first, second = (
        json.loads(line) for line in answer(b"1 2\n\n", with_scores=True, with_ponder=True)[0].splitlines()
    )
    times = first["ponder_times"].pop("decoder")
    assert len(times) == 3 and all(time > 0 for time in times)
    assert first == {
        "input": "1 2",
        "output": "1 2",
        "score": pytest.approx(3 * RIGHT, abs=1e-5),
        "ponder_times": {"encoder": [3.0, 4.0, 1.0]},
        "tokens": {"encoder": ["1", "2", "<end>"], "decoder": ["1", "2", "<end>"]},
    }
    nothing = {"encoder": [], "decoder": []}
    assert second == {"input": "", "output": "", "score": 0.0, "ponder_times": nothing, "tokens": nothing}


def test_hypotheses_are_in_the_json_object(answer, copying, monkeypatch):
    run = Loaded(Copier(), CopyDigits())
    run.model.strength.assign(8.0)  # so that no shorter answer is more probable
    monkeypatch.setattr(copying, "answers", run.answers)
    options = DecodingOptions(beam_size=3, n_best=2)
    record = json.loads(answer(b"1 2\n", options=options, with_scores=True, with_hypotheses=True)[0])
    assert [hypothesis["output"] for hypothesis in record["hypotheses"]][0] == record["output"] == "1 2"
    assert len(record["hypotheses"]) == 2
    assert record["normalized_score"] == record["hypotheses"][0]["normalized_score"]
    assert record["normalized_score"] == pytest.approx(3 * (8 - np.log(np.exp(8) + 11)) / (8 / 6) ** 0.6, abs=1e-5)


def test_generate_is_the_command_in_python(copying, answer):
    data = "".join(line + "\n" for line in LINES).encode()
    for options in ({}, {"beam_size": 3}, {"temperature": 1.0, "seed": 4}, {"temperature": 0.7, "top_k": 3}):
        written = answer(data, options=DecodingOptions(**options))[0].decode().split("\n")[:-1]
        assert copying.generate(LINES, batch_size=2, **options) == written
    assert copying.generate([]) == [] and copying.generate([""]) == [""]


def test_progress_is_said_while_it_runs(answer, capsys, monkeypatch):
    monkeypatch.setattr(decoding, "SECONDS", 0.0)
    answer(b"1 2\n" * 64)
    err = capsys.readouterr().err
    assert "answered 32 lines, " in err and " lines/s, " in err


def test_file_that_is_not_there_is_known_before_a_model_is_loaded(tmp_path):
    with pytest.raises(UserError, match="cannot read .*none"):
        decode(CopyDigits(), pytest.fail, str(tmp_path / "none"), str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_before_a_model_is_loaded(tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("1\n")
    for target in (tmp_path, source / "out.txt"):
        with pytest.raises(UserError, match="cannot write"):
            decode(CopyDigits(), pytest.fail, str(source), str(target))


def test_a_stream_that_breaks_leaves_its_answers_and_no_file(copying, tmp_path, capsys):
    import gzip

    digits = np.random.default_rng(2).integers(0, 10, 3000).tolist()
    data = gzip.compress("".join(f"{digit}\n" for digit in digits).encode())
    (tmp_path / "cut.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match="cut.gz: broken gzip file"):
        decode(copying.problem, lambda: copying, str(tmp_path / "cut.gz"))
    answers = capsys.readouterr().out.splitlines()
    assert len(answers) > 100 and answers == [str(digit) for digit in digits[: len(answers)]]
    with pytest.raises(UserError, match="cut.gz: broken gzip file"):
        decode(copying.problem, lambda: copying, str(tmp_path / "cut.gz"), str(tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["cut.gz"]


def test_an_empty_file_has_no_answers(answer, capsys):
    assert answer(b"") == (b"", 0)
    assert "answered 0 lines" in capsys.readouterr().err


def test_closed_standard_input_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed: name a file"):
        decode(CopyDigits(), pytest.fail)


def test_closed_standard_output_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UserError, match="standard output is closed: name a file"):
        decode(CopyDigits(), pytest.fail)


def test_what_is_written_is_utf8_whatever_the_locale(monkeypatch):
    class Loud(CopyDigits):
        def decode_target(self, ids):
            return "\u00e9"

    out = io.BytesIO()
    _standard_input(monkeypatch, b"1\n")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    decode(Loud(), lambda: Loaded(Copier(), Loud()))
    assert out.getvalue() == b"\xc3\xa9\n"


def test_one_text_in_place_of_a_list_is_refused(copying):
    with pytest.raises(UserError, match="a list of texts, not one"):
        copying.generate("1 2 3")


@pytest.mark.parametrize("wrong", [7, None, b"1"])
def test_what_is_no_text_is_refused_with_its_number(copying, wrong):
    for function in (copying.generate, copying.score):
        with pytest.raises(UserError, match="takes texts, and text 2 is no string: "):
            function(["1", wrong])


def test_in_python_a_batch_of_none_and_a_depth_that_was_not_learned_are_refused(copying):
    with pytest.raises(UsageError, match="batch_size=0 is not a positive integer"):
        copying.generate(["1"], batch_size=0)
    hparams = hparams_sets.get("adaptive_universal_transformer_babi")().override({"step_timing_signal_type": "learned"})
    learned = Loaded(Copier(), CopyDigits(), hparams)
    with pytest.raises(UsageError, match="max_steps=99: the model has learned a signal for each of"):
        learned.generate(["1"], max_steps=99)


def test_what_is_left_out_of_a_line_is_said_with_its_number(copying, capsys, monkeypatch, answer):
    monkeypatch.setattr(CopyDigits, "cut", lambda self, text: "too long" if len(text) > 4 else "")
    decode_lines(copying, ["1", "1 2 3"])
    assert capsys.readouterr().err == "warning: line 2: too long\n"
    assert answer(b"1\n1 2 3\n")[1] == 0
    assert "in, line 2: too long\n" in capsys.readouterr().err


def test_windows_are_as_large_as_is_said():
    assert (windows.FIRST, windows.MOST) == (256, 4096)
