"""Which devices a name stands for."""

import os
import subprocess
import sys

import pytest

from tests.trainer.two_workers import ROOT, run_workers
from trainer import devices
from ut_keras.errors import UserError

SEVERAL_STEPS = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer import devices

for size in (1, 2):  # a second strategy of the process works too, with other shapes
    two = devices.start("mirrored")
    assert (two.describe(), two.replicas, two.workers, two.worker, two.chief) == ("2 x CPU", 2, 1, 0, True)
    with two.strategy.scope():
        weight = tf.Variable(tf.zeros([size]), aggregation=tf.VariableAggregation.MEAN)

    def replica(step):
        context = tf.distribute.get_replica_context()
        mine = tf.cast(context.replica_id_in_sync_group + 1, tf.float32) * tf.cast(step, tf.float32) * tf.ones([size])
        total = context.all_reduce("SUM", mine)
        weight.assign_add(total)
        return total

    @tf.function
    def steps(count):
        def body(step, sums):
            total = two.strategy.reduce("MEAN", two.strategy.run(replica, args=(step,)), axis=None)[-1]
            return step + 1, sums.write(step, total)

        sums = tf.TensorArray(tf.float32, count)
        return tf.while_loop(lambda step, _: step < count, body, (0, sums))[1].stack()

    assert steps(tf.constant(4)).numpy().tolist() == [0.0, 3.0, 6.0, 9.0]
    assert weight.numpy().tolist() == [18.0] * size
"""

AUTO_OF_ONE = """
import os, signal
from trainer import cluster, devices
signal.signal(signal.SIGTERM, lambda number, frame: print("SIGTERM"))
there = devices.start("multi_worker", cluster.from_environment("multi_worker"), 30)
os.kill(os.getpid(), signal.SIGTERM)
print(there.describe(), there.replicas, there.chief)
"""

UNDER_SLURM = """
from trainer import agreement, cluster, devices
there = devices.start("multi_worker", cluster.from_environment("multi_worker"), 30)
print(there.cluster.source, agreement.gather(there, there.cluster.names[there.worker]))
"""


def test_one_device_is_the_default_strategy():
    for name in ("one_device", "auto"):
        one = devices.start(name)
        assert (one.replicas, one.workers, one.worker, one.chief) == (1, 1, 0, True)
        assert one.describe() == "1 x CPU"


def test_a_missing_tpu_is_one_line(monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    with pytest.raises(UserError) as error:
        devices.start("tpu")
    assert "--strategy=tpu: there is no usable TPU 'local'" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.slow
def test_mirrored_cpus_run_several_steps_in_one_function():
    argv = [sys.executable, "-c", SEVERAL_STEPS]
    result = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.slow
def test_a_cluster_of_one_worker_computes_and_sigterm_stays_ours():
    (result,) = run_workers(["-c", AUTO_OF_ONE], count=1, timeout=60)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.splitlines() == ["SIGTERM", "1 x CPU 1 True"]


@pytest.mark.slow
def test_two_tasks_of_slurm_compute_together():
    common = {"TF_CONFIG": None, "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "localhost"}
    common |= {"SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_JOB_ID": str(os.getpid())}
    results = run_workers(["-c", UNDER_SLURM], env=lambda index: {**common, "SLURM_PROCID": str(index)}, timeout=90)
    for result in results:
        assert result.returncode == 0, result.stderr[-3000:]
        assert result.stdout == "Slurm ['worker 0', 'worker 1']\n"
