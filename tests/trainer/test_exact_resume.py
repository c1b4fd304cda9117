"""A run that was stopped and gone on with, in new processes, ends as one that never was."""

import contextlib
import json

import pytest

import problems
import trainer
from problems.pipeline import BatchPlan
from tests.trainer import recorded_tasks
from tests.trainer.run_files import curves, distance, records, saved
from tests.trainer.two_workers import free_ports, live_workers

pytestmark = pytest.mark.slow  # processes of their own, each of which compiles

STEPS = 40
COMMON = [
    "--problem=tiny_class",
    "--hparams=layer_prepostprocess_dropout=0.1,attention_dropout=0.1,relu_dropout=0.1,batch_size=7,eval_every=10",
    "--hparams=learning_rate_schedule=constant*linear_warmup,learning_rate_warmup_steps=30",
    "--log_every=3",
]
RECIPES = {
    "plain": [],
    "averages and half precision": ["--ema_decay=0.9", "--mixed_precision=mixed_float16"],
    "several steps in a call": ["--steps_per_execution=7"],
}


def expected_batches(tiny_dir):
    """Returns {step: fingerprint} of all batches."""
    split = problems.get("tiny_class").prepare().split("train")
    plan = BatchPlan(split.lengths, 7, fixed=True, max_length=256, seed=0)
    return {step: recorded_tasks.fingerprint(plan.padded_batch(step)) for step in range(STEPS)}


class Runs:
    """Starts processes that note their batches, on one device or as two workers, and keeps the notes of the chief."""

    def __init__(self, path, tiny_dir, workers=1):
        self.path, self.workers = path, workers
        self._usr_dir = tiny_dir.replace("tiny_tasks", "recorded_tasks")
        self.asked = []  # of each process, [(step, fingerprint)]
        self.results = []

    def start(self, *flags, signal_at=None, told=(), pause=0.0):
        """Runs the program to its end, which is `signal_at` for the workers `told`; returns their exit codes."""
        argv = ["-m", "trainer", *COMMON, f"--usr_dir={self._usr_dir}", f"--output_dir={self.path}", *flags]
        ports = free_ports(self.workers)
        notes = [
            self.path.with_name(f"{self.path.name}-{len(self.asked)}-{index}.batches") for index in range(self.workers)
        ]
        with contextlib.ExitStack() as stack:
            workers = []
            for index, note in enumerate(notes):
                environment = {"RECORD_BATCHES": str(note), "PAUSE": str(pause)}
                environment |= {"SIGNAL_AT": signal_at} if index in told else {}
                live = live_workers(argv, self.workers, environment, ports, only=[index])
                workers += stack.enter_context(live)
            self.results = [worker.wait(120) for worker in workers]
        asked = [[tuple(map(int, line.split())) for line in note.read_text().splitlines()] for note in notes]
        assert all(one[0] == asked[0][0] for one in asked), "all workers begin with the same batch"
        self.asked.append(asked[0])
        return [result.returncode for result in self.results]

    def trained(self):
        """Returns the batches of the updates that count: what a process asked for and lost was asked for again."""
        starts = [asked[0][0] for asked in self.asked[1:]]
        return [one for asked, end in zip(self.asked, [*starts, STEPS]) for one in asked if one[0] < end]


def assert_same(parts, whole):
    """Asserts that nothing tells two runs apart; returns the largest difference of the tensors of their checkpoints."""
    assert records(parts) == records(whole)
    assert json.loads((parts / "best.json").read_text()) == json.loads((whole / "best.json").read_text())
    for name in ("eval.json", "decodes.txt"):
        assert (parts / name).read_text() == (whole / name).read_text()
    found, expected = curves(parts), curves(whole)
    assert found.keys() == expected.keys() > {"train/loss", "dev/accuracy", "train_ponder_time/encoder"}
    for tag, points in expected.items():
        assert [(step, value.tolist()) for step, value in found[tag]] == [
            (step, value.tolist()) for step, value in points
        ]
    difference = max(distance(saved(parts, name), saved(whole, name)) for name in ("checkpoints", "best"))
    print(f"weights, slots, averages, loss scale, best: differ by {difference:.1e}")
    assert difference <= 1e-6
    return difference


@pytest.fixture
def train(tiny_dir, tmp_path):
    """Trains in this process into <temporary>/<name>."""

    def trained(name, *argv):
        assert trainer.main([*COMMON, f"--usr_dir={tiny_dir}", f"--output_dir={tmp_path / name}", *argv]) == 0
        return tmp_path / name

    return trained


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_stopped_run_ends_as_one_that_was_not(recipe, train, tiny_dir, tmp_path, rng):
    flags = RECIPES[recipe]
    whole = train("whole", *flags, f"--train_steps={STEPS}")
    steps = [line["step"] for line in records(whole)]
    assert steps == sorted(steps)
    assert [line["step"] for line in records(whole) if "dev/count" in line] == [10, 20, 30, 40]
    names = saved(whole)
    assert any(name.startswith("averaged/") for name in names) == ("--ema_decay=0.9" in flags)
    assert any(name.startswith("loss_scale/") for name in names) == ("--mixed_precision=mixed_float16" in flags)

    train("halves", *flags, "--train_steps=20")
    train("halves", *flags, f"--train_steps={STEPS}")
    assert_same(tmp_path / "halves", whole)

    runs = Runs(tmp_path / "stopped", tiny_dir)
    killed, ended = rng.integers(12, 20), rng.integers(21, 35)
    for name, step, code in (("KILL", killed, -9), ("TERM", ended, 143)):
        at = f"{name}:{step}:{rng.uniform(0.0, 0.03):.3f}"
        print(f"{recipe}: {at}")
        assert runs.start(*flags, f"--train_steps={STEPS}", signal_at=at, told=[0]) == [code], runs.results[0].stderr
    assert runs.start(*flags, f"--train_steps={STEPS}") == [0]
    assert runs.asked[2][0][0] == runs.asked[1][-1][0] + 1, "SIGTERM loses nothing"
    assert runs.trained() == sorted(expected_batches(tiny_dir).items())
    assert_same(tmp_path / "stopped", whole)


def test_two_workers_that_were_stopped_end_as_two_that_were_not(tiny_dir, tmp_path, rng):
    flags = ["--ema_decay=0.9", f"--train_steps={STEPS}"]
    whole = Runs(tmp_path / "whole", tiny_dir, workers=2)
    assert whole.start(*flags) == [0, 0]
    assert whole.trained() == sorted(expected_batches(tiny_dir).items())
    stopped = Runs(tmp_path / "stopped", tiny_dir, workers=2)
    kill, end = f"KILL:{rng.integers(11, 20)}:0.01", f"TERM:{rng.integers(11, 15)}:0.01"
    assert stopped.start(*flags, signal_at=kill, told=[0, 1]) == [-9, -9], stopped.results[0].stderr
    # TensorFlow's handler looks for a signal once in a second: it is to find one before step 40.
    assert stopped.start(*flags, signal_at=end, told=[1], pause=0.15) == [143, 143], stopped.results[0].stderr
    assert stopped.start(*flags) == [0, 0]
    assert stopped.asked[2][0][0] == stopped.asked[1][-1][0] + 1, "SIGTERM loses nothing"
    assert stopped.trained() == sorted(expected_batches(tiny_dir).items())
    assert_same(stopped.path, whole.path)
