"""Lines of words to labels that hold blanks, from training to export."""

import pytest
import tensorflow as tf

import trainer
from trainer.export import export

LINES = ["up down", "", "unheard up"]
LABELS = {"going up", "not at all"}


@pytest.fixture(scope="module")
def labels(tiny_dir, tmp_path_factory):
    """The directory of a run of tiny_label."""
    path = tmp_path_factory.mktemp("labels") / "run"
    argv = ["--problem=tiny_label", f"--usr_dir={tiny_dir}", f"--output_dir={path}", "--train_steps=3"]
    assert trainer.main(argv) == 0
    return path


@pytest.mark.slow  # trains and exports
def test_label_with_a_blank_is_answered_reported_and_exported(labels):
    run = trainer.load(labels)
    answers = run.generate(LINES)
    assert answers[1] == "" and {answers[0], answers[2]} <= LABELS
    rights = {
        line.removeprefix("  right   ") for line in (labels / "decodes.txt").read_text().split("\n") if "right" in line
    }
    assert rights <= LABELS
    served = tf.saved_model.load(str(export(run))).signatures["serving_default"](inputs=tf.constant(LINES))
    assert [text.decode() for text in served["outputs"].numpy()] == answers


def test_labels_are_scored_and_an_unknown_one_is_one_line(labels, tmp_path, capsys):
    path = tmp_path / "pairs.tsv"
    path.write_text("up down\tgoing up\nup down\tnot at all\n")
    assert trainer.main(["score", f"--output_dir={labels}", f"--score_file={path}"]) == 0
    first, second = (float(line) for line in capsys.readouterr().out.splitlines())
    both = tf.exp(first) + tf.exp(second)
    assert 0 < both < 1  # the reserved ids have the rest
    path.write_text("up\tgoing up\nup\tgoing upp\n")
    assert trainer.main(["score", f"--output_dir={labels}", f"--score_file={path}"]) == 1
    err = capsys.readouterr().err
    assert err == f"trainer: error: {path}, line 2: tiny_label has no class 'going upp'; near names: going up\n"
