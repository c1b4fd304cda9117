"""The cluster of a Slurm job step, from the variables that `srun` sets. Standard library only.

TensorFlow's SlurmClusterResolver is not used: it sorts hosts as text (n10 before n2, while Slurm numbers tasks in the
order of its own list), cannot be made on a node without a GPU (it divides by the number of GPUs), and writes
CUDA_VISIBLE_DEVICES over what Slurm has set.
"""

import re

from trainer.cluster import Cluster
from ut_keras.errors import UsageError

NEEDED = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE")
FIRST_PORT = 20000  # below the ports that Linux deals out by itself (32768 and up)


def cluster(environment):
    """Returns the Cluster of a job step: one worker per task, in the order of their ranks.

    Ports are a function of the job and step, so that jobs that share a node do not meet:
    from 20000 on 16 for each of 700 jobs, or 64 for each of 175 where a node has more than 16 tasks.

    Args:
        environment: mapping of environment variables; SLURM_JOB_ID and SLURM_STEP_ID choose the ports.

    Raises:
        UsageError: not inside of `srun`, a variable is malformed, or tasks are not dealt in blocks.
    """
    for name in NEEDED:
        if not environment.get(name):
            raise UsageError(f"--strategy=multi_worker: Slurm has not set {name}; start the workers by `srun`")
    rank, tasks = _number(environment, "SLURM_PROCID"), _number(environment, "SLURM_STEP_NUM_TASKS")
    hosts = expand_hosts(environment["SLURM_STEP_NODELIST"])
    counts = expand_counts(environment["SLURM_STEP_TASKS_PER_NODE"])
    if len(hosts) != len(counts) or sum(counts) != tasks or rank >= tasks:
        raise UsageError(
            f"--strategy=multi_worker: Slurm's variables do not agree: task {rank} of {tasks}, "
            f"nodes {environment['SLURM_STEP_NODELIST']}, tasks per node {environment['SLURM_STEP_TASKS_PER_NODE']}"
        )
    room = 16 if max(counts) <= 16 else 64
    slots = 11200 // room
    job = int(environment.get("SLURM_JOB_ID") or 0) + int(environment.get("SLURM_STEP_ID") or 0)
    port = FIRST_PORT + room * (job % slots)
    places = [(host, port + number) for host, count in zip(hosts, counts) for number in range(count)]
    own = environment.get("SLURMD_NODENAME")
    if own and own != places[rank][0]:
        raise UsageError(
            f"--strategy=multi_worker: Slurm has put task {rank} on {own}, not on {places[rank][0]}; "
            "use `srun --distribution=block`"
        )
    return Cluster.of_workers([f"{host}:{port}" for host, port in places], rank, "Slurm")


def expand_hosts(text):
    """Returns the hosts of a Slurm list, in its order: "n[1-2,07],m5" is n1, n2, n07, m5."""
    hosts = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        names = [""]
        for plain, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
            names = [name + end for name in names for end in ([plain] if plain else _expand_range(ranges, text))]
        hosts += names
    return hosts


def expand_counts(text):
    """Returns the tasks of each node: "3(x2),1" is 3, 3, 1."""
    counts = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if not match:
            raise UsageError(f"--strategy=multi_worker: SLURM_STEP_TASKS_PER_NODE={text} is not a list such as 2(x3),1")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _expand_range(ranges, text):
    for part in ranges.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            raise UsageError(f"--strategy=multi_worker: SLURM_STEP_NODELIST={text} is not a list such as n[1-2],m5")
        for number in range(int(match[1]), int(match[2] or match[1]) + 1):
            yield str(number).zfill(len(match[1]))


def _number(environment, name):
    if not environment[name].isdigit():
        raise UsageError(f"--strategy=multi_worker: {name}={environment[name]} is not a number")
    return int(environment[name])
