"""tensor2tensor's metrics of sequences: its own numbers on its padded batches, and ours on real tokens alone."""

import types

import numpy as np
import pytest

import problems
from problems import problem as problem_module
from tests import golden_files
from tests.scripted import Copier, CopyDigits, Grouped, LastSentence, packed
from trainer import eval_metrics, measure
from trainer.evaluate import Evaluator
from trainer.loaded import Loaded
from ut_keras import registry
from ut_keras.errors import UsageError

GOLDEN = golden_files.load("metrics")
NAMES = tuple(eval_metrics.METRICS)
PROBLEMS = registry.problems.names()  # as they are on import: other tests register problems of a user's own


class Measured(Grouped):
    """As CopyDigits, with groups, and every metric there is."""

    eval_metrics = (*eval_metrics.ALWAYS, *NAMES)


def scores_of(problem, name="test"):
    """All teacher-forced scores of a split, made by the model that copies."""
    return Evaluator(Loaded(Copier(), problem)).evaluate(problem.split(name), name, free_running=False)


def padded_scores(case):
    """{metric: (score, sums)} of a golden batch, its padding left where it is."""
    labels = GOLDEN[f"{case}/labels"].tolist()
    predictions = GOLDEN[f"{case}/logits"].argmax(axis=-1).tolist()
    result = {}
    for name, metric in eval_metrics.METRICS.items():
        rows = zip(labels, predictions, strict=True)
        if name == "edit_distance":  # which takes padding for none
            rows = [([i for i in row if i], predicted) for row, predicted in rows]
        sums = np.sum([metric.measure(*row) for row in rows], axis=0)
        result[name] = metric.score(*sums), sums
    return result


@pytest.mark.parametrize("case", GOLDEN.cases())
def test_padded_batches_have_tensor2tensors_scores(case):
    golden, scores = GOLDEN.under(case), padded_scores(case)
    for ours, theirs in {
        "approx_bleu_score": "approx_bleu",
        "rouge_2_fscore": "rouge_2_fscore",
        "rouge_L_fscore": "rouge_l_fscore",
        "edit_distance": "edit_distance/weighted_mean",
    }.items():
        assert scores[ours][0] == pytest.approx(golden[theirs], rel=1e-6), ours
    edits, tokens = scores["edit_distance"][1]
    assert tokens == golden["edit_distance/weights"]
    assert edits / tokens == pytest.approx(golden["edit_distance/values"])


def test_what_is_predicted_at_padding_counts_for_nothing():
    targets = np.array([[3, 4, 5, 1, 0, 0], [7, 1, 0, 0, 0, 0], [0] * 6])
    predictions = np.array([[3, 4, 6, 1, 4, 5], [7, 1, 7, 1, 7, 1], [3] * 6])
    found = eval_metrics.by_example(NAMES, targets, predictions)
    short = eval_metrics.by_example(NAMES, targets[:, :4], predictions[:, :4])
    assert list(found) == eval_metrics.columns(NAMES)
    for column, values in found.items():
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, short[column], err_msg=column)
    bleu = [found[f"approx_bleu_score/{what}"].tolist() for what in ("matches_1", "matches_2", "possible_4")]
    assert bleu == [[3, 2, 0], [1, 1, 0], [1, 0, 0]]
    assert found["rouge_2_fscore/sum"].tolist() == [np.float32(1 / 3), 1, 0]
    assert found["rouge_L_fscore/sum"].tolist() == [0.75, 1, 0]
    assert found["rouge_L_fscore/count"].tolist() == [1, 1, 0]
    assert found["edit_distance/edits"].tolist() == [1, 0, 0]
    assert found["edit_distance/tokens"].tolist() == [4, 2, 0]


def test_predicted_padding_is_a_token_left_out():
    found = eval_metrics.by_example(["edit_distance"], np.array([[3, 4, 5, 1]]), np.array([[4, 5, 1, 0]]))
    assert found["edit_distance/edits"].tolist() == [1]


def test_scores_of_a_split_are_worked_out_over_all_of_it():
    # Four answers of 4, 2, 7 and 3 ids; in the last one 5 7 <end> is predicted as 5 8 <end>.
    scores = scores_of(Measured())
    teacher_forced = {
        "approx_bleu_score": (15 / 16 * 10 / 12 * 7 / 8 * 5 / 5) ** 0.25,
        "rouge_2_fscore": 3 / 4,
        "rouge_L_fscore": (3 + 2 / 3) / 4,
        "edit_distance": 1 / 16,
        "accuracy": 15 / 16,
        "accuracy_top5": 1.0,  # none but the one that is copied is above the right id
        "accuracy_per_sequence": 3 / 4,
    }
    for name, value in teacher_forced.items():
        assert scores[f"test/teacher_forced/{name}"] == pytest.approx(value), name
    perplexity = scores["test/teacher_forced/log_perplexity"]
    assert scores["test/teacher_forced/neg_log_perplexity"] == -perplexity
    # of the groups: "1" and the wrong one; two right ones
    assert scores["test/short/teacher_forced/edit_distance"] == pytest.approx(1 / 5)
    assert scores["test/short/teacher_forced/rouge_L_fscore"] == pytest.approx((1 + 2 / 3) / 2)
    assert scores["test/long/teacher_forced/approx_bleu_score"] == 1.0


@pytest.mark.parametrize("tokens", [1, 20])
def test_scores_do_not_depend_on_the_batch_size(monkeypatch, tokens):
    whole = scores_of(Measured())
    monkeypatch.setattr(measure, "POSITIONS", tokens)
    again = scores_of(Measured())
    assert list(again) == list(whole)
    for key, value in whole.items():
        if not key.endswith("/info"):
            assert again[key] == pytest.approx(value, rel=1e-6), key


def test_a_problem_that_asks_for_none_has_none():
    scores = scores_of(CopyDigits())
    assert not [key for key in scores if key.rsplit("/", 1)[1] in NAMES]
    assert {f"test/teacher_forced/{name}" for name in eval_metrics.ALWAYS} < scores.keys()


def test_a_class_has_those_of_every_problem():
    class Classes(LastSentence):
        eval_metrics = NAMES

    scores = scores_of(Classes(), "dev")
    assert not [key for key in scores if key.rsplit("/", 1)[1] in NAMES]
    assert scores["dev/accuracy_top5"] == 1.0
    assert scores["dev/neg_log_perplexity"] == -scores["dev/log_perplexity"]


def test_an_empty_split_has_scores_of_nought():
    empty = packed("test", [{"inputs": np.ones(1, int), "targets": np.ones(1, int)}])
    scores = Evaluator(Loaded(Copier(), Measured())).evaluate(empty, "test", free_running=False, limit=0)
    assert [scores[f"test/teacher_forced/{name}"] for name in NAMES] == [0.0] * 4


def test_text_and_sorting_report_what_they_do_in_tensor2tensor():
    reported = {}
    for name in PROBLEMS:
        problem = problems.get(name)
        if problem.target == "sequence":
            reported.setdefault(problem.eval_metrics, []).append(name)
    assert set(reported) == {(), problem_module.TEXT_METRICS, ("edit_distance",)}
    assert reported["edit_distance",] == ["algorithmic_sort_problem"]
    text = reported[problem_module.TEXT_METRICS]
    assert {"lambada_lm", "sva_language_modeling", "text_lm", "parallel_text", "translate_ende_wmt32k"} <= set(text)
    assert not [name for name in text if name.startswith(("algorithmic", "learning_to_execute", "scan"))]


def test_an_unknown_metric_is_an_error_before_anything_is_measured():
    class Wrong(CopyDigits):
        eval_metrics = ("rouge_l_fscore",)

    with pytest.raises(
        UsageError, match="copy_digits: eval_metrics has 'rouge_l_fscore', which is no metric; near names"
    ):
        Evaluator(types.SimpleNamespace(problem=Wrong()))
