"""Who the workers are, from TF_CONFIG and Slurm; all of it before TensorFlow is imported."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from trainer import cluster, slurm
from ut_keras.errors import UsageError

TWO = {"worker": ["host-a:2222", "host-b:2222"]}
SECOND = {"type": "worker", "index": 1}
SLURM = {
    "SLURM_PROCID": "2",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "n[2,10],m-x01",
    "SLURM_STEP_TASKS_PER_NODE": "2,1(x2)",
    "SLURM_JOB_ID": "701",
    "SLURM_STEP_ID": "0",
    "SLURMD_NODENAME": "n10",
}


@pytest.fixture
def environment(monkeypatch):
    """A function that sets TF_CONFIG (an object, or text as it is) and other variables."""
    for name in ("TF_CONFIG", "KUBERNETES_SERVICE_HOST", *SLURM):
        monkeypatch.delenv(name, raising=False)

    def change(tf_config=None, **variables):
        if tf_config is not None:
            text = tf_config if isinstance(tf_config, str) else json.dumps(tf_config)
            monkeypatch.setenv("TF_CONFIG", text)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return change


def test_tf_config_names_all_workers_and_this_one(environment):
    environment({"cluster": TWO, "task": SECOND, "environment": "cloud"})
    for strategy in ("multi_worker", "auto"):
        found = cluster.from_environment(strategy)
        assert found.addresses == ("host-a:2222", "host-b:2222")
        assert (found.index, found.chief, found.source) == (1, False, "TF_CONFIG")
        assert found.describe() == "worker 1 (host-b:2222) of 2 workers, from TF_CONFIG"
        assert found.jobs == TWO
        assert found.task == ("worker", 1)


def test_a_chief_comes_before_the_workers(environment):
    environment({"cluster": {**TWO, "chief": ["[::1]:2222"]}, "task": {"type": "worker", "index": "1"}})
    found = cluster.from_environment("multi_worker")
    assert found.addresses == ("[::1]:2222", "host-a:2222", "host-b:2222")
    assert found.names == ("chief", "worker 0", "worker 1")
    assert (found.index, found.task) == (2, ("worker", 1))
    assert found.jobs == {"chief": ["[::1]:2222"], **TWO}


def test_only_multi_worker_and_auto_look_for_others(environment):
    environment({"cluster": TWO, "task": SECOND}, **SLURM)
    for strategy in ("one_device", "mirrored", "tpu"):
        assert cluster.from_environment(strategy) is None


@pytest.mark.parametrize("text", ["", "{}", '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}'])
def test_auto_without_other_workers_is_one_process(environment, text):
    environment(text, **SLURM)
    assert cluster.from_environment("auto") is None


@pytest.mark.parametrize(
    "config, words",
    [
        ('{"cluster": ', "TF_CONFIG is not JSON"),
        ("[1]", "TF_CONFIG has no cluster: [1]"),
        ({"task": SECOND}, "TF_CONFIG has no cluster"),
        ({"cluster": {}, "task": SECOND}, "TF_CONFIG has no cluster"),
        ({"cluster": {**TWO, "ps": ["c:1"]}, "task": SECOND}, "parameter servers are not supported"),
        ({"cluster": {**TWO, "evaluator": ["c:1"]}, "task": SECOND}, "'evaluator'"),
        ({"cluster": {"worker": "a:1"}, "task": SECOND}, 'worker is "a:1", not a list'),
        ({"cluster": {"worker": []}, "task": SECOND}, "worker is [], not a list"),
        ({"cluster": {"worker": ["a", "b:1"]}, "task": SECOND}, 'address "a" is not "host:port"'),
        ({"cluster": {"worker": ["a:1", ":2"]}, "task": SECOND}, 'address ":2" is not "host:port"'),
        ({"cluster": {"worker": ["a:1", "b:70000"]}, "task": SECOND}, 'address "b:70000" is not'),
        ({"cluster": {"worker": ["a:1", "grpc://b:1"]}, "task": SECOND}, 'address "grpc://b:1" is not'),
        ({"cluster": {"worker": ["a:1", 5]}, "task": SECOND}, "address 5 is not"),
        ({"cluster": {"worker": ["a:1", "a:1"]}, "task": SECOND}, "names a:1 twice"),
        ({"cluster": {"worker": ["a:1"], "chief": ["a:1"]}, "task": SECOND}, "names a:1 twice"),
        ({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}, "2 chiefs, a:1 and b:1"),
        ({"cluster": TWO}, "TF_CONFIG has no task"),
        ({"cluster": TWO, "task": {"type": "worker"}}, "TF_CONFIG has no task"),
        ({"cluster": TWO, "task": {"type": "chief", "index": 0}}, "type is 'chief', the cluster has worker"),
        ({"cluster": TWO, "task": {"type": [], "index": 0}}, "type is []"),
        ({"cluster": TWO, "task": {"type": "worker", "index": 2}}, "index is 2, worker has the indices 0 to 1"),
        ({"cluster": TWO, "task": {"type": "worker", "index": -1}}, "index is -1"),
        ({"cluster": TWO, "task": {"type": "worker", "index": None}}, "index is null"),
        ({"cluster": TWO, "task": {"type": "worker", "index": True}}, "index is true"),
    ],
)
def test_a_malformed_tf_config_is_one_line(environment, config, words):
    environment(config)
    for strategy in ("multi_worker", "auto"):
        with pytest.raises(UsageError) as error:
            cluster.from_environment(strategy)
        assert words in str(error.value)
        assert "\n" not in str(error.value)


def test_multi_worker_without_a_cluster_says_how_to_name_one(environment):
    environment()
    with pytest.raises(UsageError, match=r'set TF_CONFIG on each machine, such as \{"cluster": \{"worker"'):
        cluster.from_environment("multi_worker")


def test_slurm_numbers_tasks_in_the_order_of_its_list_of_nodes(environment):
    environment(**SLURM)
    found = cluster.from_environment("multi_worker")
    assert found.addresses == ("n2:20016", "n2:20017", "n10:20016", "m-x01:20016")
    assert (found.index, found.source) == (2, "Slurm")


def test_tf_config_comes_before_slurm(environment):
    environment({"cluster": TWO, "task": SECOND}, **SLURM)
    assert cluster.from_environment("multi_worker").source == "TF_CONFIG"


def test_two_jobs_on_one_node_have_other_ports():
    ports = [slurm.cluster({**SLURM, "SLURM_JOB_ID": str(job)}).addresses[0] for job in (4711, 4712)]
    assert ports[0] != ports[1]


def test_slurm_lists():
    assert slurm.expand_hosts("n[1-3,07],m5") == ["n1", "n2", "n3", "n07", "m5"]
    assert slurm.expand_hosts("r[1-2]n[08-10]") == ["r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"]
    assert slurm.expand_counts("3(x2),1") == [3, 3, 1]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"SLURM_STEP_NODELIST": ""}, "has not set SLURM_STEP_NODELIST; start the workers by `srun`"),
        ({"SLURM_PROCID": "x"}, "SLURM_PROCID=x is not a number"),
        ({"SLURM_STEP_NODELIST": "n[1-x]"}, "SLURM_STEP_NODELIST=n[1-x] is not a list"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2,"}, "SLURM_STEP_TASKS_PER_NODE=2, is not a list"),
        ({"SLURM_STEP_NUM_TASKS": "5"}, "do not agree: task 2 of 5"),
        ({"SLURM_PROCID": "4"}, "do not agree: task 4 of 4"),
        ({"SLURMD_NODENAME": "n2"}, "Slurm has put task 2 on n2, not on n10; use `srun --distribution=block`"),
    ],
)
def test_variables_of_slurm_that_cannot_be_used_are_one_line(change, words):
    with pytest.raises(UsageError) as error:
        slurm.cluster({**SLURM, **change})
    assert words in str(error.value)


def test_our_list_is_that_of_tensorflows_resolver_where_it_works(monkeypatch):
    import tensorflow as tf

    change = {"SLURM_STEP_NODELIST": "n[01-02],n10", "SLURM_PROCID": "3", "SLURMD_NODENAME": "n10"}
    for name, value in {**SLURM, **change}.items():
        monkeypatch.setenv(name, value)
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=20016, gpus_per_node=2, gpus_per_task=1, auto_set_gpu=False
    )
    found = slurm.cluster({**SLURM, **change})
    assert resolver.cluster_spec().as_dict() == found.jobs
    assert resolver.get_task_info() == found.task == ("worker", 3)


def test_an_error_comes_before_tensorflow_is_imported():
    program = """
import sys
from trainer import cluster
try:
    cluster.from_environment("multi_worker")
except ValueError as error:
    print(error)
print("tensorflow" in sys.modules or "keras" in sys.modules)
"""
    environment = {**os.environ, "TF_CONFIG": "{"}
    argv, root = [sys.executable, "-c", program], pathlib.Path(__file__).parents[2]
    result = subprocess.run(argv, cwd=root, env=environment, capture_output=True, text=True, timeout=60)
    first, second = result.stdout.splitlines()
    assert first.startswith("TF_CONFIG is not JSON")
    assert second == "False"
