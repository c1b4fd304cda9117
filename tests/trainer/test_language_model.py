"""A language model from training to export: prompts in, continuations out, the last word scored for itself."""

import json

import numpy as np
import pytest
import tensorflow as tf

import trainer
from trainer.decode import decode_lines
from trainer.export import export
from trainer.run_dir import RunDir

PROMPTS = ["one a a", "", "two", "one unheard a a a a a", "  "]


@pytest.fixture(scope="module")
def trained(tiny_dir, tmp_path_factory):
    """(directory of a run of tiny_text, its standard output, its standard error)."""
    import contextlib
    import io

    path = tmp_path_factory.mktemp("language") / "run"
    argv = ["--problem=tiny_text", f"--usr_dir={tiny_dir}", f"--output_dir={path}", "--train_steps=6"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert trainer.main([*argv, "--hparams=eval_every=3,max_length=5,long_examples=cut"]) == 0
    return path, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def run(trained):
    return trainer.load(trained[0])


def test_the_report_is_of_dev_where_there_is_no_test_and_says_so(trained):
    path, out, err = trained
    step = json.loads((path / "best.json").read_text())["step"]
    assert f"the weights of step {step} on the dev split (tiny_text has no test split here):" in err
    scores = json.loads((path / "eval.json").read_text())
    assert scores["dev/count"] == scores["dev/last_word/count"] == scores["dev/preference/count"] == 12
    assert scores["dev/short/count"] + scores["dev/long/count"] == 12
    assert {"dev/short/last_word/accuracy", "dev/long/preference/accuracy"} <= scores.keys()
    assert not any("free_running" in key or key.startswith("test") for key in scores)
    info = scores["dev/info"]
    assert (info["problem"], info["step"], info["checkpoint"]) == ("tiny_text", step, f"best/ckpt-{step}")
    assert info["hparams_set"] == "tiny_text" and info["problem_args"] == {"train_size": 60, "dev_size": 12}
    assert info["hparams"] == RunDir.open(path).hparams.relevant()
    assert info["fingerprint"] == json.loads((path / "problem.json").read_text())["fingerprint"]
    assert "examples of dev:" in out and "  prompt   " in out and "  goes on  " in out
    assert (path / "ponder.png").is_file()


def test_where_the_last_word_counts_one_word_is_shown(trained):
    shown = [line.split()[2:] for line in trained[1].splitlines() if line.startswith("  goes on ")]
    assert shown and all(len([word for word in words if word != "(wrong)"]) <= 1 for words in shown)


def test_the_best_has_the_lowest_loss(trained):
    path = trained[0]
    evaluations = [line for line in RunDir.open(path).metrics() if "dev/count" in line]
    best = min(evaluations, key=lambda line: (line["dev/teacher_forced/log_perplexity"], -line["step"]))
    record = json.loads((path / "best.json").read_text())
    assert (record["step"], record["selection"]) == (best["step"], "loss")


def test_inputs_are_not_spoken_of_where_there_are_none(trained):
    err = trained[2]
    assert "for an example of mean length (5 positions of target)" in err
    assert "the largest is 16 x 5 targets" in err
    assert " above max_length=5 are cut" in err
    assert "last_word/accuracy" in err and "preference/accuracy" in err and "short" not in err


def test_decode_gives_the_continuation_alone_and_its_probability(run):
    answers = decode_lines(run, PROMPTS)
    vocabulary = run.problem.vocabularies["targets"]
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        if not prompt.strip():
            assert (answer.text, answer.score, len(answer.ids)) == ("", 0.0, 0)
            continue
        assert 1 <= len(answer.ids) <= 3
        ids = np.concatenate([vocabulary.encode(prompt), answer.ids])[np.newaxis]
        logits, ponder = run.model({"targets": ids}, return_ponder=True)
        chosen = tf.gather(tf.nn.log_softmax(logits), ids, batch_dims=2)[0, -len(answer.ids) :]
        assert answer.score == pytest.approx(float(tf.reduce_sum(chosen)), rel=1e-5)
        times = ponder["decoder"].ponder_times[0, -len(answer.ids) :]
        np.testing.assert_allclose(answer.ponder_times["decoder"], times)
        np.testing.assert_allclose(answer.ponder_times["prompt"], ponder["decoder"].ponder_times[0, : -len(answer.ids)])
        assert answer.ponder_times.keys() == {"prompt", "decoder"}
    assert run.generate(PROMPTS, batch_size=1) == [answer.text for answer in answers]


def test_extra_length_is_the_length_of_the_continuation(run):
    answers = decode_lines(run, ["one a a", "two"], extra_length=1)
    assert [len(answer.ids) for answer in answers] == [1, 1]


def test_decode_command_writes_a_line_for_each(trained, tmp_path):
    (tmp_path / "in").write_text("one a\n\ntwo\n")
    argv = ["decode", f"--output_dir={trained[0]}", f"--decode_from_file={tmp_path / 'in'}", "--with_ponder"]
    assert trainer.main([*argv, "--with_scores", f"--decode_to_file={tmp_path / 'out'}"]) == 0
    first, empty, _ = (json.loads(line) for line in (tmp_path / "out").read_text().splitlines())
    assert first["input"] == "one a" and first["score"] < 0
    assert first["tokens"]["prompt"] == ["one", "a"] and first["tokens"]["decoder"]
    for side in ("prompt", "decoder"):
        assert len(first["ponder_times"][side]) == len(first["tokens"][side])
    nothing = {"prompt": [], "decoder": []}
    assert empty == {"input": "", "output": "", "score": 0.0, "ponder_times": nothing, "tokens": nothing}


def test_score_is_the_probability_of_the_whole_text_with_its_end(trained, run, tmp_path, capsys):
    (tmp_path / "texts").write_text("one a a one\n\ntwo\ttwo\n")
    assert trainer.main(["score", f"--output_dir={trained[0]}", f"--score_file={tmp_path / 'texts'}"]) == 0
    out, err = capsys.readouterr()
    ids = np.array([[3, 5, 5, 3, 1]])
    chosen = tf.gather(tf.nn.log_softmax(run.model({"targets": ids})), ids, batch_dims=2)
    values = [float(line) for line in out.splitlines()]
    assert values[0] == pytest.approx(float(tf.reduce_sum(chosen)), abs=2e-6)
    assert values == pytest.approx(run.score(["one a a one", "", "two two"]), abs=2e-6)
    assert err.splitlines()[-1].startswith("lines 3  tokens 9  total -")
    with pytest.raises(ValueError, match="tiny_text is a language model: score takes the texts alone"):
        run.score(["one"], ["two"])


@pytest.mark.slow  # exports
def test_export_answers_as_decode_and_ponders_prompt_and_continuation(run, tmp_path):
    served = tf.saved_model.load(str(export(run, tmp_path))).signatures["serving_default"]
    found = served(inputs=tf.constant(PROMPTS))
    expected = decode_lines(run, PROMPTS)
    assert [text.decode() for text in found["outputs"].numpy()] == [answer.text for answer in expected]
    np.testing.assert_allclose(found["scores"], [answer.score for answer in expected], rtol=1e-5)
    for row, prompt, answer in zip(found["ponder_times"].numpy(), PROMPTS, expected, strict=True):
        words = len(prompt.split())
        assert np.count_nonzero(row) == words + len(answer.ids)
        np.testing.assert_allclose(row[words : words + len(answer.ids)], answer.ponder_times["decoder"])
    for nothing in ([], [""]):
        found = served(inputs=tf.constant(nothing, tf.string))
        assert found["outputs"].numpy().tolist() == [b""] * len(nothing)


def test_a_split_that_is_not_there_is_refused_with_the_reason(trained, capsys):
    assert trainer.main(["evaluate", f"--output_dir={trained[0]}", "--split=test"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == "trainer: error: tiny_text: there is no split 'test': test needs test_size above 0"


def test_evaluate_takes_dev_where_there_is_no_test(trained, capsys):
    before = json.loads((trained[0] / "eval.json").read_text())
    assert trainer.main(["evaluate", f"--output_dir={trained[0]}"]) == 0
    out, err = capsys.readouterr()
    assert "tiny_text has no test split here: scoring dev" in err
    assert [line.split()[0] for line in out.splitlines() if line][-3:] == ["dev", "short", "long"]
    after = json.loads((trained[0] / "eval.json").read_text())
    assert after.keys() == before.keys()
    assert after["dev/info"] == before["dev/info"]
    assert after["dev/last_word/perplexity"] == pytest.approx(before["dev/last_word/perplexity"], rel=1e-5)


@pytest.mark.parametrize(("split", "schedule"), [("train", "train"), ("dev", "train_and_evaluate")])
def test_training_without_its_data_is_refused_before_anything_is_built(tiny_dir, tmp_path, capsys, split, schedule):
    argv = ["--problem=tiny_text", f"--usr_dir={tiny_dir}", f"--output_dir={tmp_path / 'run'}"]
    assert trainer.main([*argv, f"--problem_args={split}_size=0", f"--schedule={schedule}"]) == 1
    err = capsys.readouterr().err
    assert err.endswith(f"tiny_text: there is no split '{split}': {split} needs {split}_size above 0\n")
    assert not (tmp_path / "run").exists()


def test_datagen_says_which_splits_there_are_and_why_not_the_others(tiny_dir, capsys):
    assert trainer.main(["datagen", "--problem=tiny_text", f"--usr_dir={tiny_dir}"]) == 0
    out, err = capsys.readouterr()
    assert out == "train  60\ndev  12\n"
    assert err == "tiny_text: there is no split 'test': test needs test_size above 0\n"
