"""LAMBADA from the official archive to an export: 20 steps, tiny sizes."""

import json

import pytest
import tensorflow as tf

import trainer
from tests.problems import lambada_samples

SMALL = "hidden_size=16,filter_size=32,num_heads=2,num_rec_steps=2,train_steps=20,eval_every=20"


@pytest.mark.slow  # training, decoding and export of two problems
@pytest.mark.parametrize(
    ("name", "score"),
    [("lambada_lm", "last_word/accuracy"), ("lambada_rc", "answerable/accuracy")],
)
def test_problem_trains_scores_decodes_and_exports(tmp_path, capsys, name, score):
    run, data = f"--output_dir={tmp_path / 'run'}", f"--data_dir={tmp_path / 'data'}"
    where = [f"--manual_dir={lambada_samples.write_archive(tmp_path / 'manual')}"]
    size = "--problem_args=vocabulary_size=28"
    assert trainer.main([f"--problem={name}", run, f"--hparams={SMALL}", size, data, *where]) == 0
    # The data stay found without --manual_dir.
    for split in ("test", "control"):
        assert trainer.main(["evaluate", run, data, f"--split={split}"]) == 0
        assert 0.0 <= json.loads((tmp_path / "run" / "eval.json").read_text())[f"{split}/{score}"] <= 1.0
    line = "anna had lost the lamp . she asked where the"
    (tmp_path / "in").write_text(f"{line}\n\n")
    files = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'out'}"]
    assert trainer.main(["decode", run, *files]) == 0
    answers = (tmp_path / "out").read_text().split("\n")
    assert (len(answers), answers[1]) == (3, "")
    if name == "lambada_rc":
        assert answers[0] in line.split()
    capsys.readouterr()
    assert trainer.main(["export", run]) == 0
    model = tf.saved_model.load(capsys.readouterr().out.strip())
    outputs = model.signatures["serving_default"](inputs=tf.constant([line, ""]))["outputs"].numpy()
    assert [text.decode() for text in outputs] == answers[:2]


def test_training_without_novels_is_refused_with_the_way_out(tmp_path, capsys):
    folder = lambada_samples.write_unpacked(tmp_path / "manual", novels=())
    run = [f"--output_dir={tmp_path / 'run'}", f"--data_dir={tmp_path / 'data'}", f"--manual_dir={folder}"]
    assert trainer.main(["--problem=lambada_lm", "--problem_args=vocabulary_size=28", *run]) == 1
    assert "no novels to train on" in capsys.readouterr().err.splitlines()[-1]
