"""Scores against values worked out by hand; the model copies, and one of four targets is not a copy."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.scripted import Copier, CopyDigits, Grouped, LastSentence, packed
from trainer import evaluate as evaluation
from trainer import measure
from trainer.evaluate import Evaluator, evaluate, sample
from trainer.loaded import Loaded
from trainer.output_limit import OutputLimit
from ut_keras.decoding.options import DecodingOptions

RIGHT, WRONG = math.log(math.e + 11) - 1, math.log(math.e + 11)  # negative log-likelihood of a token


@pytest.fixture(scope="module")
def scores():
    return evaluate(Loaded(Copier(), CopyDigits()), "test")


def test_teacher_forced_scores_count_every_real_token_once(scores):
    # 4 + 2 + 7 + 3 tokens with end tokens, one of them wrong
    assert scores["test/count"] == 4 and scores["test/tokens"] == 16
    assert scores["test/teacher_forced/accuracy"] == pytest.approx(15 / 16)
    assert scores["test/teacher_forced/sequence_accuracy"] == pytest.approx(3 / 4)


def test_perplexity_is_of_all_tokens_and_is_not_smoothed(scores):
    mean = (15 * RIGHT + WRONG) / 16
    assert scores["test/teacher_forced/log_perplexity"] == pytest.approx(mean, rel=1e-6)
    assert scores["test/teacher_forced/perplexity"] == pytest.approx(math.exp(mean), rel=1e-6)


def test_free_running_scores_compare_decoded_sequences(scores):
    assert scores["test/free_running/sequence_accuracy"] == pytest.approx(3 / 4)
    assert scores["test/free_running/accuracy"] == pytest.approx(15 / 16)
    assert scores["test/free_running/count"] == 4


def test_ponder_time_is_over_real_positions(scores):
    # an id's ponder time is the id: digits + 2, and 1 for each end token
    ids = [5, 3, 6, 1, 3, 1, 7, 11, 4, 8, 7, 5, 1, 7, 10, 1]
    assert scores["test/ponder_time/encoder/mean"] == pytest.approx(sum(ids) / 16)
    assert scores["test/ponder_time/encoder/max"] == 11
    assert scores["test/ponder_time/decoder/mean"] == pytest.approx((sum(ids) - 1) / 16)


@pytest.mark.parametrize("tokens", [1, 20])
def test_no_score_depends_on_the_batch_size(scores, monkeypatch, tokens):
    monkeypatch.setattr(measure, "POSITIONS", tokens)
    again = evaluate(Loaded(Copier(), CopyDigits()), "test")
    assert list(again) == list(scores)
    assert again.pop("test/info") == scores["test/info"]
    for key, value in again.items():
        assert value == pytest.approx(scores[key], rel=1e-6), key


def test_class_scores_have_no_teacher_forcing_in_their_name():
    scores = evaluate(Loaded(Copier(), LastSentence()), "dev")
    assert scores["dev/accuracy"] == pytest.approx(2 / 3)
    assert scores["dev/log_perplexity"] == pytest.approx((2 * RIGHT + WRONG) / 3, rel=1e-6)
    assert scores["dev/ponder_time/encoder/max"] == 10
    assert not any("forced" in key or "running" in key for key in scores)


def test_evaluation_during_training_does_not_decode():
    scores = Evaluator(Loaded(Copier(), CopyDigits())).evaluate(CopyDigits().split("dev"), "dev", free_running=False)
    assert "dev/teacher_forced/accuracy" in scores
    assert not any("free_running" in key for key in scores)


def test_exact_lengths_are_made_decoded_and_counted(capsys):
    scores = evaluate(Loaded(Copier(), CopyDigits()), lengths=(5, 50), limit=3)
    assert scores["length_5/free_running/sequence_accuracy"] == 1.0
    assert scores["length_5/free_running/count"] == scores["length_5/count"] == 3
    assert scores["length_50/tokens"] == 3 * 51
    assert "length_50: decoding 3 examples" in capsys.readouterr().err


def test_a_thousand_strings_are_made_of_each_length():
    scores = evaluate(Loaded(Copier(), CopyDigits()), lengths=(2, 150))
    assert [scores[f"length_{length}/free_running/count"] for length in (2, 150)] == [1000, 1000]


def test_decoded_answer_that_is_cut_off_or_too_long_is_wrong():
    class Longer(CopyDigits):
        def split(self, name):
            long, short = self.encode_input("1 2 3"), self.encode_input("1 2")
            return packed(name, [{"inputs": long, "targets": short}, {"inputs": short, "targets": long}])

    scores = evaluate(Loaded(Copier(), Longer()), "test")
    assert scores["test/free_running/sequence_accuracy"] == 0.0
    assert scores["test/free_running/accuracy"] == pytest.approx((2 + 2) / 7)


def test_compiled_functions_serve_every_split_and_shape():
    evaluator = Evaluator(Loaded(Copier(), CopyDigits()))
    for length in (3, 7, 30):
        evaluator.evaluate(CopyDigits().exact_length_split(length, 2, 0), "made")
    assert evaluator.loaded.measure.compiled.experimental_get_tracing_count() == 1
    assert evaluator.loaded.answers(DecodingOptions()).experimental_get_tracing_count() == 1


def test_sums_of_many_batches_do_not_lose_precision(monkeypatch):
    class Lopsided(Copier):
        def call(self, x, training=False, return_ponder=False):
            logits, _ = super().call(x, training, True)
            return logits * tf.where(x["inputs"][:1, :1, tf.newaxis] == 3, 1e4, 1.0), {}

    class Two(CopyDigits):
        def split(self, name):
            first, second = self.encode_input("1"), self.encode_input("2")
            wrong = {"inputs": first, "targets": second}
            return packed(name, [wrong] + [{"inputs": second, "targets": second}] * 3)

    monkeypatch.setattr(measure, "POSITIONS", 1)
    scores = Evaluator(Loaded(Lopsided(), Two())).evaluate(Two().split("x"), "x", free_running=False)
    assert scores["x/teacher_forced/log_perplexity"] == pytest.approx((1e4 + 6 * RIGHT) / 8, rel=1e-6)
    assert scores["x/teacher_forced/perplexity"] < math.inf


def test_sample_is_spread_over_the_split_and_always_the_same():
    np.testing.assert_array_equal(sample(10, 5), [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(sample(3, 200), [0, 1, 2])
    np.testing.assert_array_equal(sample(3), [0, 1, 2])


def test_groups_have_every_score_of_their_own():
    scores = evaluate(Loaded(Copier(), Grouped()), "test")
    info = scores["test/info"]
    assert info.keys() == {"decoding", "signature", "groups"}
    assert (info["signature"], info["groups"]) == ("a:b", ["short", "long", "none"])
    # short: "1" and the wrong "5 8"; long: seven and four tokens
    assert (scores["test/short/count"], scores["test/short/tokens"], scores["test/long/tokens"]) == (2, 5, 11)
    assert scores["test/short/teacher_forced/accuracy"] == pytest.approx(4 / 5)
    assert scores["test/short/free_running/sequence_accuracy"] == 0.5
    assert scores["test/long/free_running/accuracy"] == scores["test/long/teacher_forced/accuracy"] == 1.0
    assert scores["test/short/teacher_forced/log_perplexity"] == pytest.approx((4 * RIGHT + WRONG) / 5, rel=1e-6)
    assert scores["test/short/ponder_time/encoder/max"] == 10 and scores["test/long/ponder_time/encoder/max"] == 11
    assert [key for key in scores if key.startswith("test/none/")] == ["test/none/count"]


def test_all_of_the_split_is_scored_and_decoded_unless_a_limit_says_less(capsys):
    for problem in (Grouped(), CopyDigits()):
        every = evaluate(Loaded(Copier(), problem), "test")
        assert every["test/count"] == every["test/free_running/count"] == 4
    capsys.readouterr()
    part = evaluate(Loaded(Copier(), Grouped()), "test", limit=2)  # "3 1 4" and "5 9 2 6 5 3", both long
    assert part["test/free_running/pairs"] == part["test/free_running/count"] == part["test/count"] == 2
    assert part["test/tokens"] == 4 + 7
    assert part["test/info"]["sample_of"] == 4 and "sample_of" not in every["test/info"]
    assert part["test/long/free_running/count"] == part["test/long/count"] == 2
    assert part["test/short/count"] == 0 and "test/short/free_running/count" not in part
    assert capsys.readouterr().err.splitlines() == ["test: 2 of 4 examples", "test: decoding 2 examples"]
    assert evaluate(Loaded(Copier(), CopyDigits()), "test", limit=9)["test/count"] == 4


def test_limit_holds_for_classes():
    scores = evaluate(Loaded(Copier(), LastSentence()), "dev", limit=1)
    assert scores["dev/count"] == 1 and scores["dev/accuracy"] == 1.0


def test_free_running_scores_say_what_they_were_decoded_with():
    run = Loaded(Copier(), CopyDigits())
    assert evaluate(run, "test")["test/info"]["decoding"] == {
        **DecodingOptions().to_dict(),
        "extra_length": None,
        "max_output_length": None,
    }
    run.model.strength.assign(8.0)  # so that no shorter answer is more probable
    options, limit = DecodingOptions(beam_size=3, alpha=0.5), OutputLimit(run.problem, max_output_length=2)
    scores = evaluate(run, "test", options=options, output_limit=limit)
    decoding = scores["test/info"]["decoding"]
    assert (decoding["beam_size"], decoding["alpha"], decoding["max_output_length"]) == (3, 0.5, 2)
    assert scores["test/free_running/sequence_accuracy"] == 1 / 4  # "1"; the others are cut
    only = Evaluator(run).evaluate(run.problem.split("test"), "test", free_running=False)
    assert "test/info" not in only


def test_samples_of_an_example_are_the_same_in_a_part_of_the_split():
    run = Loaded(Copier(), CopyDigits())
    options = DecodingOptions(temperature=2.0, seed=1)
    seen = {}

    def recorded(*arguments, keys, **how):
        answers = answer_ids(*arguments, keys=keys, **how)
        for key, answer in zip(keys, answers, strict=True):
            assert seen.setdefault(int(key), answer.ids.tolist()) == answer.ids.tolist()
        return answers

    answer_ids, evaluation.answer_ids = evaluation.answer_ids, recorded
    try:
        evaluate(run, "test", options=options)
        evaluate(run, "test", options=options, limit=2)
    finally:
        evaluation.answer_ids = answer_ids
    assert sorted(seen) == [0, 1, 2, 3]


def test_depth_holds_for_all_scores():
    depths = []

    class Deep(Copier):
        def call(self, x, training=False, return_ponder=False, max_steps=None):
            depths.append(max_steps)
            return super().call(x, training, return_ponder)

        def encode(self, x, max_steps=None):
            depths.append(max_steps)
            return super().encode(x)

    scores = evaluate(Loaded(Deep(), CopyDigits()), "test", options=DecodingOptions(max_steps=3))
    assert 3 in depths and scores["test/info"]["max_steps"] == 3
    assert scores["test/info"]["decoding"]["max_steps"] == 3
    assert evaluate(Loaded(Copier(), CopyDigits()), "test")["test/info"].keys() == {"decoding"}


def test_a_long_decode_gives_signs_of_life(monkeypatch, capsys):
    import time

    from trainer import progress

    def slow(*arguments, doing, **options):
        doing(3, 9)
        deadline = time.monotonic() + 60
        while "3 of 4 examples (" not in "".join(said) and time.monotonic() < deadline:
            time.sleep(0.01)
            said.append(capsys.readouterr().err)
        return answer_ids(*arguments, **options)

    said, answer_ids = [], evaluation.answer_ids
    monkeypatch.setattr(evaluation, "answer_ids", slow)
    monkeypatch.setattr(progress.Progress.__init__, "__defaults__", (None, 0.1, False))
    evaluate(Loaded(Copier(), CopyDigits()), "test")
    assert "... decoding test: 3 of 4 examples (" in "".join(said)


def test_unknown_words_are_not_found_in_each_other():
    class Open(CopyDigits):
        """Its first digit stands for every unknown word."""

        def __init__(self):
            super().__init__()
            self.vocabularies["targets"].unknown = 2

        def split(self, name):
            example = {"inputs": self.encode_input("5 0 0 7"), "targets": self.encode_input("5 0 0 7")}
            return packed(name, [example])

        def text_scores(self, outputs, references):
            assert (outputs, references) == (["5 7"], ["5 0 0 7"])
            return {"words": 2.0}

    assert evaluate(Loaded(Copier(), Open()), "test")["test/free_running/words"] == 2.0
