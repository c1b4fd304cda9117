"""The commands that read a run directory, from flags to what they print and write."""

import json

import pytest

import trainer


@pytest.fixture(scope="module")
def run(tiny_dir, tmp_path_factory):
    """The directory of a run of tiny_class, trained for two steps; --usr_dir is not needed again."""
    path = tmp_path_factory.mktemp("commands") / "run"
    argv = ["--problem=tiny_class", f"--usr_dir={tiny_dir}", f"--output_dir={path}", "--train_steps=2"]
    assert trainer.main([*argv, "--schedule=train"]) == 0
    return path


def test_evaluate_prints_scores_and_keeps_them(run, capsys):
    assert trainer.main(["evaluate", f"--output_dir={run}", "--split=dev"]) == 0
    out, err = capsys.readouterr()
    scores = dict(line.split() for line in out.splitlines())
    assert scores["dev/count"] == "12"
    assert 0.0 <= float(scores["dev/accuracy"]) <= 1.0
    assert "the weights of step 2" in err
    assert json.loads((run / "eval.json").read_text())["dev/count"] == 12


def test_schedule_evaluate_is_the_evaluate_command(run, tiny_dir, capsys):
    argv = ["--problem=tiny_class", f"--output_dir={run}", f"--usr_dir={tiny_dir}", "--train_steps=2"]
    assert trainer.main([*argv, "--schedule=evaluate"]) == 0
    assert "test/accuracy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["evaluate", "--split=tset"], 2, "tiny_class has no split 'tset'; it has train, dev, test"),
        (["evaluate", "--lengths=3"], 2, "tiny_class has no inputs of a chosen length"),
        (["evaluate", "--lengths=3", "--split=dev"], 2, "reads no split: leave --split=dev out"),
        (["evaluate", "--beam_size=4"], 2, "beam_size=4 searches for a sequence and the answer is a class"),
        (["evaluate", "--seed=4"], 2, "tiny_class is scored without decoding: leave --seed out"),
        (["evaluate", "--extra_length=4"], 2, "tiny_class answers with a class, which has no length"),
        (["evaluate", "--manual_dir=/nowhere/data"], 1, "--manual_dir=/nowhere/data does not exist: name the folder"),
        (["evaluate", "--checkpoint=/nowhere/ckpt-1"], 1, "there is no checkpoint /nowhere/ckpt-1"),
        (["decode", "--decode_from_file=/nowhere/lines"], 1, "/nowhere/lines"),
        (["decode", "--decode_hparams=batch_size=0"], 2, "batch_size='0' is not a positive integer"),
        (["decode", "--beam_size=4"], 2, "the answer is a class: leave it out"),
        (["decode", "--max_output_length=4"], 2, "leave max_output_length out"),
        (["decode", "--max_steps=4"], 2, "max_steps=4: the model has learned a signal for each of 3 steps"),
        (["export"], 2, "the problem needs its own text_encoder"),
        (["export", "--beam_size=2"], 2, "the answer is a class: leave it out"),
        (["explain", "--text=red green", "--target=purple"], 1, "the target: tiny_class has no class 'purple'"),
        (["explain", "--text= "], 1, "the text is empty: there is nothing to explain"),
        (["explain", "--text=red green", "--to=/"], 1, "cannot write /: it is a directory"),
    ],
)
def test_a_mistake_is_one_line(run, argv, code, message, capsys):
    before = sorted(path for path in run.rglob("*") if path.name != "export")
    assert trainer.main([*argv, f"--output_dir={run}"]) == code
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("trainer: error: ")
    assert message in line
    assert sorted(path for path in run.rglob("*") if path.name != "export") == before


@pytest.mark.parametrize("command", ["evaluate", "decode", "score", "export", "explain"])
def test_a_checkpoint_that_is_not_there_is_known_before_tensorflow(run, command, capsys, monkeypatch):
    monkeypatch.setattr("trainer.commands.import_tensorflow", pytest.fail)
    more = {"score": ["--score_file=pairs.tsv"], "explain": ["--text=red green"]}.get(command, [])
    assert trainer.main([command, f"--output_dir={run}", "--checkpoint=/nowhere/ckpt-1", *more]) == 1
    assert "there is no checkpoint /nowhere/ckpt-1; name best, last, or a path" in capsys.readouterr().err


def test_decode_answers_a_file_line_by_line(run, tmp_path, capsys):
    (tmp_path / "in").write_text("red green blue red\n\ngreen green\n")
    files = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'out'}"]
    assert trainer.main(["decode", f"--output_dir={run}", *files, "--decode_hparams=batch_size=2"]) == 0
    answers = (tmp_path / "out").read_text().split("\n")
    assert len(answers) == 4
    assert answers[1] == answers[3] == ""
    assert capsys.readouterr().out == ""


def test_datagen_prints_the_sizes(tiny_dir, capsys):
    argv = ["datagen", "--problem=tiny_class", f"--usr_dir={tiny_dir}", "--problem_args=train_size=20"]
    assert trainer.main(argv) == 0
    assert capsys.readouterr().out == "train  20\ndev  12\ntest  12\n"
