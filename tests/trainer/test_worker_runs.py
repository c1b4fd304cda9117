"""`python -m trainer` as two workers: one that does not come, one that is killed, and what the other one says."""

import json
import pathlib
import re
import signal
import time

import pytest

from tests.trainer.two_workers import free_ports, live_workers, run_workers

pytestmark = pytest.mark.slow  # processes that import TensorFlow and compile training

TINY = pathlib.Path(__file__).parent / "tiny_tasks"


def arguments(path, *argv):
    """Returns Python's arguments for training tiny_class into a directory."""
    flags = [f"--usr_dir={TINY}", "--problem=tiny_class", f"--output_dir={path}", "--log_every=1"]
    return ["-m", "trainer", *flags, *argv]


def test_a_worker_that_never_starts_is_named_within_the_time_of_the_flag(tmp_path):
    ports = free_ports(2)
    start = time.monotonic()
    [chief] = run_workers(arguments(tmp_path / "run", "--worker_timeout=4"), ports=ports, only=[0], timeout=90)
    assert chief.returncode == 1
    assert time.monotonic() - start < 60
    assert chief.stderr.count("\n") == 1
    assert f"worker 1 (127.0.0.1:{ports[1]}) has not started within 4 s" in chief.stderr
    assert not (tmp_path / "run").exists()


def test_a_worker_that_is_killed_is_named_and_both_go_on_after_a_restart(tmp_path):
    ports = free_ports(2)
    argv = arguments(tmp_path / "run", "--eval_every=5", "--schedule=train")
    with live_workers([*argv, "--train_steps=1000000"], ports=ports) as (chief, other):
        chief.wait_for("step 12/", 180)
        other.send(signal.SIGKILL)
        start = time.monotonic()
        ended = chief.wait(100)
    assert ended.returncode == 1
    assert f"worker 1 (127.0.0.1:{ports[1]}) does not answer any more" in ended.stderr
    print(f"named after {time.monotonic() - start:.1f} s")
    saved = max(int(path.stem[5:]) for path in (tmp_path / "run" / "checkpoints").glob("ckpt-*.index"))
    again = run_workers([*argv, f"--train_steps={saved + 7}"], ports=ports, timeout=180)
    assert [worker.returncode for worker in again] == [0, 0], again[0].stderr
    assert f"going on from step {saved}" in again[0].stderr
    steps = [json.loads(line)["step"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, saved + 8))


def test_only_the_chief_writes_and_speaks_and_its_profile_is_of_its_own_devices(tmp_path):
    argv = arguments("run", "--train_steps=4", "--eval_every=2", "--profile=2,2")
    changes = {"TFDS_DATA_DIR": str(tmp_path / "data")}
    with live_workers(argv, env=changes, directories=[tmp_path / "first", tmp_path / "second"]) as workers:
        chief, other = [worker.wait(240) for worker in workers]
    assert (chief.returncode, other.returncode) == (0, 0), chief.stderr + other.stderr
    assert re.fullmatch(
        r"worker 1 \(.*\) of 2 workers, from TF_CONFIG: worker 0 .* the log and the run directory\n", other.stderr
    )
    assert other.stdout == ""
    assert list((tmp_path / "second").iterdir()) == []
    assert len(re.findall(r"^step 2/4 ", chief.stderr, re.MULTILINE)) == 1
    assert list((tmp_path / "first" / "run" / "tb" / "plugins" / "profile").glob("*/*.xplane.pb"))
    evaluated = run_workers(arguments(tmp_path / "first" / "run", "--schedule=evaluate"), timeout=120)
    assert [bool(worker.stdout) for worker in evaluated] == [True, False]
