"""What the program does with a run directory that is not as it left it, or that is to go on differently."""

import shutil

import pytest

import trainer
from problems import textio
from tests.trainer.checkpointed import damage, steps
from tests.trainer.run_files import distance, losses, records, saved

pytestmark = pytest.mark.slow  # each trains on

STEPS = 6


@pytest.fixture(scope="module")
def common(tiny_dir):
    """Flags of a run that saves after every step."""
    flags = ["--problem=tiny_class", f"--usr_dir={tiny_dir}", "--schedule=train", "--eval_every=1", "--log_every=1"]
    return [*flags, "--keep_checkpoints=2"]


@pytest.fixture(scope="module")
def whole(common, tmp_path_factory):
    """A run of 4 steps, and, as `6 steps`, of two more."""
    path = tmp_path_factory.mktemp("whole")
    assert trainer.main([*common, f"--output_dir={path / '4 steps'}", "--train_steps=4"]) == 0
    shutil.copytree(path / "4 steps", path / "6 steps")
    assert trainer.main([*common, f"--output_dir={path / '6 steps'}", f"--train_steps={STEPS}"]) == 0
    return path


@pytest.fixture
def run(whole, tmp_path):
    """A copy of the run of 4 steps."""
    shutil.copytree(whole / "4 steps", tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def go_on(common, run):
    """Goes on with the copy; returns the exit code."""
    return lambda *flags: trainer.main([*common, f"--output_dir={run}", f"--train_steps={STEPS}", *flags])


def assert_ended_as(whole, run):
    assert distance(saved(run), saved(whole / "6 steps")) == 0.0
    assert records(run) == records(whole / "6 steps")
    assert steps(run / "checkpoints") == [5, 6]


@pytest.mark.parametrize("ending", ["index", "data-00000-of-00001"])
def test_from_a_newest_checkpoint_cut_in_half_it_falls_back_and_says_so(go_on, whole, run, ending, capsys):
    damage(run / "checkpoints" / f"ckpt-4.{ending}")
    assert go_on() == 0
    err = capsys.readouterr().err
    warning = next(line for line in err.splitlines() if line.startswith("warning: "))
    assert f"checkpoint {run / 'checkpoints' / 'ckpt-4'} is damaged" in warning
    assert warning.endswith("trying the one before")
    assert "going on from step 3" in err
    assert_ended_as(whole, run)


def test_what_a_killed_save_left_behind_goes(go_on, whole, run, capsys):
    checkpoints = run / "checkpoints"
    (checkpoints / ".ckpt-5.part").mkdir()
    (checkpoints / ".ckpt-5.part" / "ckpt-5.index").write_bytes(b"half")
    (checkpoints / "ckpt-5.data-00000-of-00001").write_bytes(b"half")
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"step": 5, "train/loss": 77.0}\n{"step": 5, "dev/co')
    assert go_on() == 0
    assert "going on from step 4" in capsys.readouterr().err
    assert_ended_as(whole, run)
    assert not list(checkpoints.glob(".*"))


def test_a_run_without_its_checkpoints_starts_again_and_says_so(go_on, whole, run, capsys):
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").mkdir()
    assert go_on() == 0
    err = capsys.readouterr().err
    assert "holds no checkpoint, though its metrics.jsonl goes to step 4: starting from step 0" in err
    assert_ended_as(whole, run)


def test_an_empty_directory_becomes_a_run(common, whole, tmp_path):
    (tmp_path / "empty").mkdir()
    assert trainer.main([*common, f"--output_dir={tmp_path / 'empty'}", f"--train_steps={STEPS}"]) == 0
    assert_ended_as(whole, tmp_path / "empty")


@pytest.mark.parametrize(
    "flag, was, given",
    [
        ("--hparams=num_heads=4", "num_heads=2", "num_heads=4"),
        ("--hparams=act_max_steps=5", "act_max_steps=3", "act_max_steps=5"),
        ("--problem=tiny_label", "problem=tiny_class", "problem=tiny_label"),
        ("--problem_args=train_size=61", "problem_args train_size=60", "problem_args train_size=61"),
        ("--mixed_precision=mixed_bfloat16", "mixed_precision=none", "mixed_precision=mixed_bfloat16"),
        ("--seed=1", "seed=0", "seed=1"),
    ],
)
def test_what_makes_it_another_run_is_refused_with_both_values(go_on, run, flag, was, given, capsys):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert go_on(flag) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"holds a run with {was}, not {given}: repeat that or choose another --output_dir" in err
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_a_changed_learning_rate_is_taken_and_told(go_on, whole, run, capsys):
    assert go_on("--hparams=learning_rate_constant=0.001") == 0
    err = capsys.readouterr().err
    assert "learning_rate_constant was 0.003 and is 0.001 from here on" in err
    assert "going on from step 4" in err
    rates = [line["train/learning_rate"] for line in records(run)]
    assert rates == pytest.approx([0.003] * 4 + [0.001] * 2)
    assert losses(run)[5] == losses(whole / "6 steps")[5], "the first update from there on starts from the same weights"
    assert losses(run)[6] != losses(whole / "6 steps")[6]


def test_other_data_and_another_vocabulary_are_refused_with_both_values(tmp_path, capsys):
    def write(lines):
        for split in ("train", "dev", "test"):
            textio.write_lines(tmp_path / "files" / f"{split}.tsv", lines)

    flags = ["--problem=text_class", "--problem_args=vocabulary=words", f"--manual_dir={tmp_path / 'files'}"]
    flags += [f"--data_dir={tmp_path / 'data'}", f"--output_dir={tmp_path / 'run'}", "--schedule=train"]
    flags += ["--hparams=hidden_size=8,filter_size=8,num_heads=2,num_rec_steps=1"]
    write(["a cat\tyes", "a dog\tno"])
    assert trainer.main([*flags, "--train_steps=1"]) == 0
    before = saved(tmp_path / "run")
    for lines, words in (
        (["a cat\tyes", "a cat\tno", "a dog\tno"], ["fingerprint is", "and the run's"]),
        (["a cat\tyes", "a dog\tno", "a big dog\tno"], ["vocabulary of its inputs", "has 7 ids", "with 6 ids"]),
    ):
        write(lines)
        capsys.readouterr()
        assert trainer.main([*flags, "--train_steps=2"]) == 1
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith("trainer: error: text_class: ")
        assert all(word in line for word in words), line
    assert distance(saved(tmp_path / "run"), before) == 0.0
