"""Log-probabilities of given answers, by a model whose probabilities are known."""

import math

import numpy as np
import pytest

from tests.scripted import Copier, CopyDigits, LastSentence
from trainer import measure
from trainer.evaluate import Evaluator
from trainer.loaded import Loaded
from trainer.score import score
from ut_keras.errors import UserError

RIGHT, WRONG = 1 - math.log(math.e + 11), -math.log(math.e + 11)
PAIRS = [("3 1 4", "3 1 4"), ("1", "2"), ("5 9 2 6 5 3", "5 9"), ("7", "")]
SCORES = [4 * RIGHT, RIGHT + WRONG, 2 * RIGHT + WRONG, WRONG]


@pytest.fixture(scope="module")
def copying():
    return Loaded(Copier(), CopyDigits())


def test_one_number_for_each_line_in_their_order_and_the_perplexity_of_all(copying, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    score(copying.problem, lambda: copying, path)
    out, err = capsys.readouterr()
    np.testing.assert_allclose([float(line) for line in out.splitlines()], SCORES, atol=2e-6)
    total, tokens = sum(SCORES), 4 + 2 + 3 + 1
    assert err == f"lines 4  tokens 10  total {total:.4f}  perplexity {math.exp(-total / tokens):.4f}\n"


@pytest.mark.parametrize("tokens", [1, 15, 8192])
def test_score_does_not_depend_on_batch_mates(copying, monkeypatch, tokens):
    monkeypatch.setattr(measure, "POSITIONS", tokens)
    np.testing.assert_allclose(copying.score(*zip(*PAIRS, strict=True)), SCORES, rtol=1e-6)


def test_class_is_scored_by_its_label(tmp_path):
    run = Loaded(Copier(), LastSentence())
    np.testing.assert_allclose(run.score(["3 1. 4", "5"], ["4", "6"]), [RIGHT, WRONG], rtol=1e-6)
    with pytest.raises(UserError, match="^text 2: last_sentence has no class '10'$"):
        run.score(["1", "2"], ["1", "10"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3 1 4", "pairs.tsv, line 2: it has no tab; a line is a source, one tab and a target"),
        ("3\t1\t4", "pairs.tsv, line 2: it has 2 tabs; a line is a source, one tab and a target"),
        ("3 x\t4", "pairs.tsv, line 2: copy_digits: 'x' is not one of 0 to 9"),
        ("3\t4 x", "pairs.tsv, line 2: copy_digits: 'x' is not one of 0 to 9"),
        (" \t4", "pairs.tsv, line 2: its source is empty"),
        ("", "pairs.tsv, line 2: it has no tab"),
    ],
)
def test_line_that_cannot_be_scored_is_named_before_a_model_is_loaded(line, message, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"1\t1\n{line}\n2\t2\n")
    with pytest.raises(UserError) as error:
        score(CopyDigits(), pytest.fail, path)
    assert message in str(error.value)
    assert capsys.readouterr().out == ""


def test_half_a_character_in_an_answer_is_refused_with_its_number(copying):
    with pytest.raises(UserError, match=r"^text 1: '\\udcff' is half of a surrogate pair"):
        copying.score(["1"], ["1\udcff"])


def test_no_lines_no_numbers(copying, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text("")
    score(copying.problem, lambda: copying, path)
    assert capsys.readouterr() == ("", "lines 0  tokens 0  total 0.0000  perplexity 1.0000\n")


def test_lists_that_do_not_fit_are_refused(copying):
    with pytest.raises(UserError, match="it got 2 and 1"):
        copying.score(["1", "2"], ["1"])
    with pytest.raises(UserError, match="it got 1 and 0"):
        copying.score(["1"])
    with pytest.raises(UserError, match="a list of texts, not one"):
        copying.score(["1"], "1")
    assert copying.score([], []) == []


def test_batches_are_small_where_the_vocabulary_is_large(copying, monkeypatch):
    run, shapes = Loaded(Copier(), CopyDigits()), []

    class Recorder(measure.Measure):
        def __call__(self, batch, *arguments):
            shapes.append((len(batch["targets"]), batch["inputs"].shape[1] + batch["targets"].shape[1]))
            return super().__call__(batch, *arguments)

    run.measure = Recorder(run.model, run.problem)
    assert run.measure.positions == 8192
    monkeypatch.setattr(measure, "LOGITS", 12 * 14)
    assert run.measure.positions == 14
    run.score(["1 2", "1", "3 4", "5 6"] * 2, ["1 2", "1", "3 4", "5 6"] * 2)
    Evaluator(run).evaluate(CopyDigits().exact_length_split(2, 5, 0), "made", free_running=False)
    assert len(shapes) > 4 and all(rows * width <= 14 for rows, width in shapes)
