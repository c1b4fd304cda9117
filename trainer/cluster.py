"""Who the workers of a run are: read from the environment and checked, before TensorFlow is imported.

Standard library only.
"""

import dataclasses
import json
import os
import re
import sys

from ut_keras.errors import UsageError

EXAMPLE = (
    'set TF_CONFIG on each machine, such as {"cluster": {"worker": ["host-a:2222", "host-b:2222"]}, '
    '"task": {"type": "worker", "index": 0}}'
)

ADDRESS = r"(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):([0-9]{1,5})"


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers of a run, the same list in the same order in every process, and which of them this process is.

    Attributes:
        addresses: tuple of "host:port", one per worker; the first is the chief, which writes the run directory.
        index: place of this process in `addresses`.
        names: tuple of the workers' names as TF_CONFIG's user knows them: "chief", "worker 0", ...
        source: where it was read: "TF_CONFIG", "Slurm" or "Kubernetes".
    """

    addresses: tuple
    index: int
    names: tuple
    source: str

    @classmethod
    def of_workers(cls, addresses, index, source):
        """Returns the cluster of equal workers "worker 0", "worker 1", ..."""
        return cls(tuple(addresses), index, tuple(f"worker {i}" for i in range(len(addresses))), source)

    @property
    def chief(self):
        return self.index == 0

    @property
    def jobs(self):
        """{"chief": [address], "worker": [address, ...]}, as TensorFlow's cluster specification wants them."""
        jobs = {}
        for name, address in zip(self.names, self.addresses):
            jobs.setdefault(name.split()[0], []).append(address)
        return jobs

    @property
    def task(self):
        """(job, index in the job) of this process."""
        job, *number = self.names[self.index].split()
        return job, int(number[0]) if number else 0

    def named(self, index):
        """Returns a worker's name and address: "worker 1 (host-b:2222)"."""
        return f"{self.names[index]} ({self.addresses[index]})"

    def describe(self):
        """Returns one line: who this process is and of how many."""
        return f"{self.named(self.index)} of {len(self.addresses)} workers, from {self.source}"


def from_environment(strategy, timeout=120.0):
    """Returns the Cluster that this process belongs to; None where it computes alone.

    Args:
        strategy: "multi_worker": TF_CONFIG, else Slurm's variables, else Kubernetes'. "auto": TF_CONFIG where it
            names two workers or more. Every other strategy is of one process.
        timeout: seconds to wait for the scheduler to start the others (Kubernetes).

    Raises:
        UsageError: TF_CONFIG is malformed, or there is no cluster for "multi_worker".
    """
    from trainer import kubernetes_job, slurm  # they make a Cluster

    if strategy not in ("auto", "multi_worker"):
        return None
    text = os.environ.get("TF_CONFIG", "").strip()
    text = "" if text == "{}" else text
    if strategy == "auto":
        cluster = from_tf_config(text) if text else None
        if not cluster and (tasks := os.environ.get("SLURM_STEP_NUM_TASKS", "1")) != "1":
            hint = "for one training by all of them add --strategy=multi_worker"
            print(f"warning: Slurm has started {tasks} of this program: {hint}", file=sys.stderr)
        return cluster if cluster and len(cluster.addresses) > 1 else None
    if text:
        return from_tf_config(text)
    if "SLURM_PROCID" in os.environ or "SLURM_JOB_ID" in os.environ:
        return slurm.cluster(os.environ)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return kubernetes_job.cluster(os.environ, timeout)
    raise UsageError(f"--strategy=multi_worker: this process does not know the other workers; {EXAMPLE}")


def from_tf_config(text):
    """Returns the Cluster of a TF_CONFIG; UsageError, one line, when anything of it is wrong.

    Args:
        text: JSON, {"cluster": {"worker": ["host:port", ...], "chief": ["host:port"]}, "task": {"type", "index"}};
            "chief" may be left out: worker 0 is the chief then. Keys beside these two are ignored.
    """
    try:
        config = json.loads(text)
    except ValueError as error:
        raise UsageError(f"TF_CONFIG is not JSON ({error}): {_short(text)}; {EXAMPLE}") from None
    jobs = config.get("cluster") if isinstance(config, dict) else None
    if not isinstance(jobs, dict) or not jobs:
        raise UsageError(f"TF_CONFIG has no cluster: {_short(text)}; {EXAMPLE}")
    for job, addresses in jobs.items():
        _check_job(job, addresses)
    chiefs, workers = jobs.get("chief", []), jobs.get("worker", [])
    addresses = chiefs + workers
    if len(chiefs) > 1:
        raise UsageError(f"TF_CONFIG has {len(chiefs)} chiefs, {' and '.join(chiefs)}; only one leads")
    for address in addresses:
        if addresses.count(address) > 1:
            raise UsageError(f"TF_CONFIG names {address} twice: each worker has an address of its own")
    return Cluster(
        addresses=tuple(addresses),
        index=_task_index(config, jobs),
        names=tuple(["chief"] * len(chiefs) + [f"worker {i}" for i in range(len(workers))]),
        source="TF_CONFIG",
    )


def _check_job(job, addresses):
    if job == "ps":
        raise UsageError("TF_CONFIG has tasks of type 'ps': parameter servers are not supported; use chief and worker")
    if job not in ("chief", "worker"):
        raise UsageError(f"TF_CONFIG has tasks of type {job!r}: use chief and worker only; the chief evaluates")
    if not isinstance(addresses, list) or not addresses:
        raise UsageError(f'TF_CONFIG: {job} is {_short(json.dumps(addresses))}, not a list of "host:port"')
    for address in addresses:
        match = re.fullmatch(ADDRESS, address) if isinstance(address, str) else None
        if not match or not 0 < int(match[1]) < 65536:
            shown = _short(json.dumps(address))
            raise UsageError(f'TF_CONFIG: the {job} address {shown} is not "host:port", such as "host-a:2222"')


def _task_index(config, jobs):
    """Returns the place of TF_CONFIG's own task among all tasks."""
    task = config.get("task")
    if not isinstance(task, dict) or "type" not in task or "index" not in task:
        raise UsageError('TF_CONFIG has no task: add which worker this is, "task": {"type": "worker", "index": 0}')
    job, index = task["type"], task["index"]
    if not isinstance(job, str) or job not in jobs:
        raise UsageError(f"TF_CONFIG: the task's type is {job!r}, the cluster has {' and '.join(sorted(jobs))}")
    number = str(index)  # a string of digits too: some schedulers write it so, and TensorFlow takes it
    if isinstance(index, bool) or not re.fullmatch(r"[0-9]+", number) or int(number) >= len(jobs[job]):
        last = len(jobs[job]) - 1
        raise UsageError(f"TF_CONFIG: the task's index is {json.dumps(index)}, {job} has the indices 0 to {last}")
    return int(number) + (len(jobs.get("chief", [])) if job == "worker" else 0)


def _short(text):
    return text if len(text) <= 80 else text[:77] + "..."
