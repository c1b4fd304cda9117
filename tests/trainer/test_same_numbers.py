"""One device, two replicas, two processes, any micro-batching: the program trains to the same numbers."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.trainer.run_files import curves, distance, losses, records, saved
from tests.trainer.two_workers import ROOT, environments, free_ports, live_workers

pytestmark = pytest.mark.slow  # processes of their own, each of which compiles

# Each line of its input is the command line of one run.
TWO_REPLICAS = """
import json, sys
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import trainer

for line in sys.stdin:
    assert trainer.main(json.loads(line)) == 0
"""

EXACT = (
    "--hparams=layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0,optimizer_adam_epsilon=1e-6,"
    "use_fixed_batch_size=true,learning_rate_schedule=constant,learning_rate_constant=0.003"
)
SMALL = "--hparams=hidden_size=16,filter_size=32,num_heads=2,act_max_steps=4"
TASKS = {
    "bAbI": ["--problem=babi_qa_sentence_task1_1k", "--hparams_set=adaptive_universal_transformer_babi"],
    "copy": [
        "--problem=algorithmic_identity_decimal40",
        "--hparams_set=adaptive_universal_transformer_algorithmic",
        "--problem_args=train_size=2000,dev_size=10,test_size=10",
        "--hparams=position_start_index=none",  # random offsets are drawn as dropout is: for each part of a batch
    ],
}


def run_one(argv):
    """Runs `python -m trainer` on one device and returns its CompletedProcess."""
    return _run(["-m", "trainer", *argv])


def run_with_two_replicas(*runs):
    """Runs the program, once for each argv, in one process with two CPUs."""
    return _run(["-c", TWO_REPLICAS], "\n".join(map(json.dumps, runs)))


def _run(argv, lines=None):
    environment = environments(1)[0]
    del environment["TF_CONFIG"]
    result = subprocess.run(
        [sys.executable, *argv], cwd=ROOT, env=environment, input=lines, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result


def run_as_two_workers(first, second):
    """Runs two processes of one cluster, each with its own argv, and returns their CompletedProcesses."""
    ports = free_ports(2)
    start = [
        live_workers(["-m", "trainer", *argv], ports=ports, only=[index]) for index, argv in enumerate((first, second))
    ]
    with start[0] as chief, start[1] as other:
        results = [worker.wait(240) for worker in chief + other]
    for result in results:
        assert result.returncode == 0, result.stderr[-3000:]
    return results


def ponder(path):
    """Returns all that was counted of ponder times: means and maxima of each step, and TensorBoard's histograms."""
    lines = [{name: value for name, value in line.items() if "ponder" in name} for line in records(path)]
    histograms = [(tag, step, value.tolist()) for tag, points in curves(path).items() for step, value in points]
    return lines, [one for one in histograms if one[0].startswith("train_ponder_time/")]


@pytest.mark.parametrize("task", TASKS)
def test_thirty_steps_are_the_same_however_they_are_dealt(task, tmp_path):
    common = [*TASKS[task], EXACT, SMALL, f"--data_dir={tmp_path / 'data'}", "--train_steps=30", "--eval_every=30"]
    common += ["--schedule=train", "--log_every=1"]
    batch, half = "--hparams=batch_size=16", "--hparams=batch_size=8,batch_size_per_replica=true"

    def argv(name, *flags):
        return [*common, *flags, f"--output_dir={tmp_path / name}"]

    run_one(argv("one", batch))
    runs = [
        argv("in two parts", batch, "--strategy=one_device", "--gradient_accumulation=2"),
        argv("two replicas", batch, "--strategy=mirrored"),
    ]
    if task == "bAbI":  # which compiles faster
        runs += [
            argv("two replicas in three parts", batch, "--strategy=mirrored", "--gradient_accumulation=3"),
            argv("batch size per replica", half, "--strategy=mirrored"),
        ]
    run_with_two_replicas(*runs)
    workers = run_as_two_workers(argv("two workers", batch), argv("of the second worker", batch))

    expected, weights, pondered = losses(tmp_path / "one"), saved(tmp_path / "one"), ponder(tmp_path / "one")
    assert list(expected) == list(range(1, 31))
    assert expected[30] < 0.9 * expected[1], "it learns"
    assert len(pondered[1]) == 30 * len({tag for tag, *_ in pondered[1]}) > 0
    assert max(line["train/ponder_time/encoder/max"] for line in pondered[0]) > 2
    for path in sorted(tmp_path.iterdir()):
        if path.name not in ("one", "data"):
            found = losses(path)
            assert list(found) == list(expected)
            of_losses = max(abs(found[step] - expected[step]) for step in expected)
            of_weights = distance(saved(path), weights)
            print(f"{task}, {path.name}: losses differ by {of_losses:.1e}, weights and slots by {of_weights:.1e}")
            assert of_losses < 1e-5
            assert of_weights < 1e-4
            assert ponder(path) == pondered
    assert not (tmp_path / "of the second worker").exists()
    logged = [line.split()[1] for line in workers[0].stderr.splitlines() if line.startswith("step ")]
    assert logged == [f"{step}/30" for step in range(1, 31)]
    assert "step " not in workers[1].stderr
    assert workers[1].stdout == ""


def test_few_examples_leave_a_replica_with_less_or_nothing_and_harm_nothing(tiny_dir, tmp_path):
    common = [f"--usr_dir={tiny_dir}", "--train_steps=8", "--eval_every=8", "--schedule=train", "--log_every=1"]
    common += [EXACT, "--hparams=batch_size=4"]
    problems = {5: "tiny_copy", 3: "tiny_class", 1: "tiny_class"}

    def argv(size, name):
        data = [f"--problem={problems[size]}", f"--problem_args=train_size={size}"]
        return [*common, *data, f"--strategy={name}", f"--output_dir={tmp_path}/{name}{size}"]

    run_with_two_replicas(*(argv(size, name) for size in problems for name in ("one_device", "mirrored")))
    for size in problems:
        one, two = tmp_path / f"one_device{size}", tmp_path / f"mirrored{size}"
        expected, found = losses(one), losses(two)
        assert list(found) == list(expected) == [1, 2, 3, 4, 5, 6, 7, 8]
        assert np.isfinite(list(found.values())).all()
        of_losses = max(abs(found[step] - expected[step]) for step in expected)
        of_weights = distance(saved(one), saved(two))
        print(f"{size} examples: losses differ by {of_losses:.1e}, weights and slots by {of_weights:.1e}")
        assert of_losses < 1e-5
        assert of_weights < 1e-4
        assert ponder(one) == ponder(two)
