"""The cluster of an Indexed Job, read through a package `kubernetes` made for the test."""

import sys
import types

import pytest

from trainer import cluster, kubernetes_job
from ut_keras.errors import UsageError, UserError

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "my-job-2"}


def pod(index, phase="Running", address=None, deleted=None, attempt="x"):
    """A pod as the package gives it; its index is in an annotation."""
    name = types.SimpleNamespace(
        name=f"my-job-{index}-{attempt}",
        annotations={"batch.kubernetes.io/job-completion-index": str(index)},
        deletion_timestamp=deleted,
    )
    status = types.SimpleNamespace(phase=phase, pod_ip=address or f"10.1.0.{index}", host_ip="192.168.0.1")
    return types.SimpleNamespace(metadata=name, status=status)


@pytest.fixture
def job(monkeypatch):
    """A function that puts this process into pod 2 of a job of three; it returns the calls made to Kubernetes.

    Its argument is the list of what list_namespaced_pod returns, call by call; the last is returned again.
    """
    monkeypatch.setattr(kubernetes_job, "POLL_SECONDS", 0.01)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    for name, value in POD.items():
        monkeypatch.setenv(name, value)

    def install(answers, refuse=None):
        calls = []

        def list_namespaced_pod(namespace, label_selector):
            calls.append((namespace, label_selector))
            if refuse:
                raise refuse
            return types.SimpleNamespace(items=answers[min(len(calls), len(answers)) - 1])

        def read_namespaced_job(name, namespace):
            assert (name, namespace) == ("my-job", "default")
            return types.SimpleNamespace(spec=types.SimpleNamespace(completions=3))

        package = types.ModuleType("kubernetes")
        package.config = types.SimpleNamespace(load_incluster_config=lambda: None)
        package.client = types.SimpleNamespace(
            CoreV1Api=lambda: types.SimpleNamespace(list_namespaced_pod=list_namespaced_pod),
            BatchV1Api=lambda: types.SimpleNamespace(read_namespaced_job=read_namespaced_job),
        )
        monkeypatch.setitem(sys.modules, "kubernetes", package)
        return calls

    return install


def test_workers_are_in_the_order_of_their_index_once_all_run(job):
    calls = job([[pod(2), pod(0)], [pod(2), pod(1, "Pending"), pod(0)], [pod(2), pod(1), pod(0)]])
    found = cluster.from_environment("multi_worker", timeout=5.0)
    assert found.addresses == ("10.1.0.0:2222", "10.1.0.1:2222", "10.1.0.2:2222")
    assert (found.index, found.source) == (2, "Kubernetes")
    assert calls == [("default", "job-name=my-job")] * 3


def test_pods_of_an_earlier_attempt_are_passed_over(job):
    old = [pod(0, "Failed", "10.9.0.0", attempt="a"), pod(1, "Running", "10.9.0.1", deleted="now", attempt="a")]
    job([[pod(0), pod(1), pod(2), *old]])
    assert cluster.from_environment("multi_worker").addresses[:2] == ("10.1.0.0:2222", "10.1.0.1:2222")


def test_a_pod_that_does_not_run_in_time_is_named(job):
    job([[pod(2), pod(1, "Pending")]])
    words = r"after 0.05 s .--worker_timeout.: worker 0 \(no pod\), worker 1 \(pod my-job-1-x is Pending\)"
    with pytest.raises(UserError, match=words):
        cluster.from_environment("multi_worker", timeout=0.05)


def test_a_right_that_is_missing_is_named(job):
    error = Exception("long text")
    error.reason = "Forbidden"
    job([[]], refuse=error)
    with pytest.raises(UserError, match="namespace default: the right to list pods: Forbidden"):
        cluster.from_environment("multi_worker")


def test_without_the_package_the_error_says_what_to_install(job, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(UserError, match="pip install 'ut_keras.kubernetes.', or set TF_CONFIG"):
        cluster.from_environment("multi_worker")


def test_a_pod_of_another_kind_is_told_to_be_indexed(job, monkeypatch):
    monkeypatch.delenv("JOB_COMPLETION_INDEX")
    with pytest.raises(UsageError, match="completionMode: Indexed"):
        cluster.from_environment("multi_worker")
