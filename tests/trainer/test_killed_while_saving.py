"""A run that saves after every step and is killed at a random moment, again and again."""

import json
import signal
import time

import pytest

import trainer
from tests.trainer.checkpointed import steps
from tests.trainer.run_files import curves, distance, losses, records, saved
from tests.trainer.two_workers import live_workers

ROUNDS = 10  # for each of two runs


@pytest.mark.slow  # processes of their own, each of which compiles
@pytest.mark.parametrize("evaluates", [False, True])
def test_every_kill_is_gone_on_from_and_costs_one_save_at_most(evaluates, tiny_dir, tmp_path, rng):
    path = tmp_path / "killed"
    common = [
        "--problem=tiny_class",
        f"--usr_dir={tiny_dir}",
        "--eval_every=1",
        "--log_every=1",
        "--hparams=batch_size=7",
    ]
    common += [] if evaluates else ["--schedule=train"]
    reached, lost = 0, []
    for wait in rng.uniform(0.0, 1.0, ROUNDS):
        seen = _run_and_kill([*common, f"--output_dir={path}", "--train_steps=100000"], path, reached, wait)
        newest = max(steps(path / "checkpoints"))
        assert newest >= seen, "what was seen on the disk stays there"
        lost.append(max(losses(path)) - newest)
        reached = newest
    print(f"evaluates={evaluates}: reached step {reached}; lost with the processes: {lost}")
    assert set(lost) <= {0, 1}

    flags = [*common, f"--train_steps={reached + 2}"]
    assert trainer.main([*flags, f"--output_dir={path}"]) == 0
    assert trainer.main([*flags, f"--output_dir={tmp_path / 'whole'}"]) == 0
    assert distance(saved(path), saved(tmp_path / "whole")) == 0.0
    assert records(path) == records(tmp_path / "whole")
    shown = {tag: [step for step, _ in points] for tag, points in curves(path).items()}
    assert set(map(tuple, shown.values())) == {tuple(range(1, reached + 3))}
    if evaluates:
        best, expected = ((one / "best.json").read_text() for one in (path, tmp_path / "whole"))
        assert json.loads(best) == json.loads(expected)
        assert distance(saved(path, "best"), saved(tmp_path / "whole", "best")) == 0.0
    left = {file.name for file in (path / "checkpoints").iterdir()}
    names = [f"ckpt-{step}" for step in range(reached, reached + 3)]
    assert left == {"checkpoint", *(f"{name}{end}" for name in names for end in (".index", ".data-00000-of-00001"))}


def _run_and_kill(argv, path, reached, wait):
    """Kills a run `wait` seconds after its second save; returns the newest checkpoint that was seen before."""
    with live_workers(["-m", "trainer", *argv], count=1) as (worker,):
        end = time.monotonic() + 120
        while max(steps(path / "checkpoints") if path.exists() else [0], default=0) < reached + 2:
            assert worker.process.poll() is None, worker.err
            assert time.monotonic() < end, worker.err
            time.sleep(0.01)
        time.sleep(wait)
        seen = max(steps(path / "checkpoints"))
        worker.send(signal.SIGKILL)
        assert worker.wait().returncode == -signal.SIGKILL
        if reached:
            assert f"going on from step {reached}" in worker.err
            assert "warning: checkpoint" not in worker.err or "was not written to its end" in worker.err
    return seen
