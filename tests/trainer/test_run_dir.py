"""The run directory: complete or not there, and readable without anything else."""

import json
import subprocess
import sys

import pytest

import problems
from trainer.run_dir import RunDir
from ut_keras.errors import UserError
from ut_keras.hparams import HParams

HPARAMS = HParams(hidden_size=16, num_heads=2)
SETTINGS = {"problem": "tiny_copy", "usr_dir": None, "seed": 5}


@pytest.fixture
def problem(tiny_dir):
    return problems.get("tiny_copy").prepare()


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_what_was_created_can_be_opened(problem, tmp_path):
    RunDir.create(tmp_path / "a" / "run", HPARAMS, problem, SETTINGS)
    run = RunDir.open(tmp_path / "a" / "run")
    assert run.hparams == HPARAMS
    assert run.settings == SETTINGS
    assert run.problem.name == "tiny_copy"
    assert run.problem.encode_input("ab").tolist() == [2, 3, 1]
    assert names(run.path) == ["hparams.json", "problem.json", "run.json"]


def test_discard_removes_a_new_directory_and_empties_one_that_was_there(problem, tmp_path):
    (tmp_path / "old").mkdir()
    for name in ("old", "new"):
        run = RunDir.create(tmp_path / name, HPARAMS, problem, SETTINGS)
        (run.path / "tb").mkdir()
        run.discard()
    assert names(tmp_path) == ["old"]
    assert names(tmp_path / "old") == []


def test_a_run_that_was_opened_or_kept_is_not_discarded(problem, tmp_path):
    run = RunDir.create(tmp_path / "run", HPARAMS, problem, SETTINGS)
    run.keep()
    run.discard()
    RunDir.open(run.path).discard()
    assert names(run.path) == ["hparams.json", "problem.json", "run.json"]


def test_a_problem_that_cannot_be_saved_leaves_nothing(tmp_path):
    class Broken:
        def save(self, path):
            (path / "problem.json").write_text("{")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        RunDir.create(tmp_path / "run", HPARAMS, Broken(), SETTINGS)
    assert names(tmp_path) == []


def test_what_an_interrupted_creation_left_is_used_again(problem, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "hparams.json").write_text("{")
    RunDir.create(tmp_path / "run", HPARAMS, problem, SETTINGS)
    assert RunDir.open(tmp_path / "run").hparams == HPARAMS


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("run.json", "{", "run.json is damaged"),
        ("run.json", "[]", "run.json is damaged"),
        ("hparams.json", '{"hidden_siz": 3}', "hparams.json: no hparam is called 'hidden_siz'"),
        ("hparams.json", None, "has no hparams.json"),
        ("run.json", None, "is not a run directory: it has no run.json"),
    ],
)
def test_a_damaged_run_is_an_error_that_names_the_file(problem, tmp_path, file, content, message):
    run = RunDir.create(tmp_path / "run", HPARAMS, problem, SETTINGS)
    (run.path / file).unlink()
    if content is not None:
        (run.path / file).write_text(content)
    with pytest.raises(UserError, match=message):
        RunDir.open(run.path)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(UserError, match="there is no run directory .*nowhere"):
        RunDir.open(tmp_path / "nowhere")


def test_metrics_are_rewound_to_the_step_that_was_restored(problem, tmp_path):
    run = RunDir.create(tmp_path / "run", HPARAMS, problem, SETTINGS)
    run.rewind_metrics(0)
    for step in (5, 10, 15):
        run.log_metrics(step, {"train/loss": step / 10})
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write('{"step": 20, "train/l')
    run.rewind_metrics(10)
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"step": 5, "train/loss": 0.5}, {"step": 10, "train/loss": 1.0}]


@pytest.mark.parametrize("line", [b"7", b"null", b'{"train/loss": 1.0}', b'{"step": "8"}', b"\xff\xfe", b"\0\0\0\0"])
def test_a_damaged_line_of_metrics_is_left_out(problem, tmp_path, line):
    run = RunDir.create(tmp_path / "run", HPARAMS, problem, SETTINGS)
    run.log_metrics(5, {"train/loss": 0.5})
    with open(run.path / "metrics.jsonl", "ab") as file:
        file.write(line + b"\n")
    run.log_metrics(6, {"train/loss": 0.25})
    assert run.metrics() == [{"step": 5, "train/loss": 0.5}, {"step": 6, "train/loss": 0.25}]


def test_a_run_is_trained_by_one_process_at_a_time(problem, tmp_path):
    run = RunDir.create(tmp_path / "run", HPARAMS, problem, SETTINGS)
    run.lock()
    other = "from trainer.run_dir import RunDir; import sys; RunDir.open(sys.argv[1]).lock()"
    command = [sys.executable, "-c", other, str(run.path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "is being trained by another process" in result.stderr
    run.unlock()
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def test_a_lock_does_not_outlive_a_discarded_run(problem, tmp_path):
    (tmp_path / "run").mkdir()
    run = RunDir.create(tmp_path / "run", HPARAMS, problem, SETTINGS)
    run.lock()
    run.discard()
    assert names(tmp_path / "run") == []
