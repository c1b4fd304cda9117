"""text_lm and text_class on a user's files: prepared, trained, evaluated, answered, exported."""

import json
import random

import pytest

import problems
import trainer
from problems import textio

WORDS = "the cat dog sat ran on under mat tree".split()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with lines and with labelled lines."""
    folder = tmp_path_factory.mktemp("files")
    rng = random.Random(1)
    for split, count in (("train", 200), ("dev", 12), ("test", 9)):
        lines = [" ".join(rng.choices(WORDS, k=rng.randint(2, 6))) for _ in range(count)]
        textio.write_lines(folder / f"{split}.txt", lines)
        labelled = [f"{line}\t{'has a cat' if 'cat' in line else 'none'}" for line in lines]
        textio.write_lines(folder / f"{split}.tsv.gz", labelled)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "metric"),
    [
        ("text_lm", "vocabulary_size=300", "test/teacher_forced/perplexity"),
        ("text_lm", "vocabulary=words", "test/teacher_forced/perplexity"),
        ("text_class", "vocabulary=bytes", "test/accuracy"),
    ],
)
def test_files_of_a_user_are_learnt_and_served(files, tmp_path, name, arguments, metric):
    import tensorflow as tf

    run, data = f"--output_dir={tmp_path / 'run'}", f"--data_dir={tmp_path / 'data'}"
    small = "--hparams=hidden_size=16,filter_size=32,num_heads=2,num_rec_steps=2"
    problem = [f"--problem={name}", f"--manual_dir={files}", f"--problem_args={arguments}"]
    assert trainer.main([*problem, run, data, small, "--train_steps=20", "--eval_every=10"]) == 0
    scores = json.loads((tmp_path / "run" / "eval.json").read_text())
    assert scores["test/count"] == 9
    assert scores[metric] > 0
    lines = ["the cat", "", "a \u2581 tree"]
    textio.write_lines(tmp_path / "lines", lines)
    assert (
        trainer.main(
            ["decode", run, f"--decode_from_file={tmp_path / 'lines'}", f"--decode_to_file={tmp_path / 'out'}"]
        )
        == 0
    )
    answers = list(textio.read_lines(tmp_path / "out"))
    assert len(answers) == 3 and answers[1] == ""
    assert trainer.load(tmp_path / "run").generate(lines) == answers
    assert trainer.main(["export", run, f"--export_dir={tmp_path / 'export'}"]) == 0
    served = tf.saved_model.load(str(next((tmp_path / "export").iterdir()))).signatures["serving_default"]
    assert [text.decode() for text in served(inputs=tf.constant(lines))["outputs"].numpy()] == answers
    loaded = problems.load(tmp_path / "run")
    assert (
        loaded.features == problems.get(name, **dict([arguments.split("=")])).prepare(tmp_path / "data", files).features
    )
    if name == "text_class":
        assert set(answers) <= {"has a cat", "none", ""}


def test_answer_with_a_line_feed_stays_one_line(monkeypatch, tmp_path, capfd):
    """Bytes and subwords can spell one: as many lines go out as came in, and nothing is lost after the work."""
    import numpy as np

    from trainer import decode
    from trainer.answers import Decoded, Hypothesis

    texts = [Hypothesis(text, -1.0, None, np.zeros(1), None) for text in ("a\nb", "c")]
    answers = [Decoded(best.text, -1.0, best.ids, np.zeros(1), {}, (best,)) for best in texts]
    monkeypatch.setattr(decode, "answer_ids", lambda *args, **kwargs: answers)
    textio.write_lines(tmp_path / "in", ["1", "2"])
    problem = problems.get("algorithmic_identity_binary40")
    problem.encode_input = lambda line: np.ones(1)
    decode.decode(problem, lambda: None, tmp_path / "in", tmp_path / "out")
    assert list(textio.read_lines(tmp_path / "out")) == ["a b", "c"]
    assert "1 answers hold a line feed" in capfd.readouterr().err
    decode.decode(problem, lambda: None, tmp_path / "in", tmp_path / "out", with_scores=True)
    assert json.loads(next(textio.read_lines(tmp_path / "out")))["output"] == "a\nb"
