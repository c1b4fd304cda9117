"""The cluster of a Kubernetes Indexed Job, from the pod's environment and the list of the job's pods.

Standard library and, where it is used, the package `kubernetes` (the extra ut_keras[kubernetes]). TensorFlow's
KubernetesClusterResolver is not used: it asks for the pods of all namespaces, takes the address of the machine for
that of the pod, loads the configuration of a user outside of the cluster, sorts job-10 before job-2, fails where a
pod of an earlier attempt is still listed, and does not know which of the pods it runs in.
"""

import pathlib
import time

from trainer.cluster import Cluster
from ut_keras.errors import UsageError, UserError

PORT = 2222  # each pod has an address of its own
NAMESPACE = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
INDEX = "batch.kubernetes.io/job-completion-index"
POLL_SECONDS = 1.0


def cluster(environment, timeout):
    """Returns the Cluster of an Indexed Job: one worker per index, port 2222 of each pod.

    The pod's service account needs the right to get the job and to list pods in its namespace.

    Args:
        environment: mapping of environment variables: JOB_COMPLETION_INDEX, which Kubernetes sets, and HOSTNAME,
            "<job>-<index>".
        timeout: seconds to wait until all pods of the job run.

    Raises:
        UsageError: this is no pod of an Indexed Job.
        UserError: the package is missing, Kubernetes refuses, or a pod does not run in time; it is named.
    """
    index, host = environment.get("JOB_COMPLETION_INDEX", ""), environment.get("HOSTNAME", "")
    if not index.isdigit() or not host.endswith(f"-{index}"):
        raise UsageError(
            "--strategy=multi_worker: this pod is not of a Kubernetes Job with completionMode: Indexed "
            f"(JOB_COMPLETION_INDEX={index or 'unset'}, HOSTNAME={host or 'unset'}); use one, or set TF_CONFIG"
        )
    job = host.removesuffix(f"-{index}")
    namespace = NAMESPACE.read_text().strip() if NAMESPACE.is_file() else "default"
    addresses = wait_for_pods(_Api(namespace), job, timeout)
    if int(index) >= len(addresses):
        raise UsageError(f"--strategy=multi_worker: pod {host} of Job {job} with {len(addresses)} completions")
    return Cluster.of_workers([f"{address}:{PORT}" for address in addresses], int(index), "Kubernetes")


def wait_for_pods(api, job, timeout):
    """Returns the addresses of a job's pods in the order of their indices, once all of them run.

    Args:
        api: an object with `workers(job)` -> int and `pods(job)` -> list of pods as the package gives them.
        job: name of the Job.
        timeout: seconds to wait.
    """
    end = time.monotonic() + timeout
    count = api.workers(job)
    while True:
        running, seen = {}, {}
        for pod in api.pods(job):  # pods of earlier attempts are listed too
            index = int((pod.metadata.annotations or {}).get(INDEX, -1))
            seen[index] = f"pod {pod.metadata.name} is {pod.status.phase}"
            if pod.status.phase == "Running" and pod.status.pod_ip and not pod.metadata.deletion_timestamp:
                running[index] = pod.status.pod_ip
        missing = [index for index in range(count) if index not in running]
        if not missing:
            hosts = [running[index] for index in range(count)]
            return [f"[{host}]" if ":" in host else host for host in hosts]
        if time.monotonic() > end:
            named = ", ".join(f"worker {index} ({seen.get(index, 'no pod')})" for index in missing)
            raise UserError(f"not all {count} pods of Job {job} run after {timeout:g} s (--worker_timeout): {named}")
        time.sleep(POLL_SECONDS)


class _Api:
    """Kubernetes, as a pod of the cluster sees it."""

    def __init__(self, namespace):
        try:
            import kubernetes
        except ImportError:
            raise UserError(
                "--strategy=multi_worker under Kubernetes needs the package kubernetes: "
                "pip install 'ut_keras[kubernetes]', or set TF_CONFIG"
            ) from None
        self._namespace = namespace
        with self._errors("the pod's service account"):
            kubernetes.config.load_incluster_config()
        self._jobs, self._core = kubernetes.client.BatchV1Api(), kubernetes.client.CoreV1Api()

    def workers(self, job):
        with self._errors(f"the right to get Job {job}"):
            return self._jobs.read_namespaced_job(job, self._namespace).spec.completions

    def pods(self, job):
        with self._errors("the right to list pods"):
            return self._core.list_namespaced_pod(self._namespace, label_selector=f"job-name={job}").items

    def _errors(self, needed):
        return _Errors(f"namespace {self._namespace}: {needed}")


class _Errors:
    """Turns what the package raises into a line that says what was needed."""

    def __init__(self, needed):
        self._needed = needed

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Exception) and not isinstance(error, UserError):
            reason = getattr(error, "reason", None) or error
            raise UserError(f"--strategy=multi_worker needs, in Kubernetes' {self._needed}: {reason}") from None
