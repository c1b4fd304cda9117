"""Workers meet before TensorFlow connects them; one that does not come is named in bounded time."""

import contextlib
import socket
import threading
import time

import pytest

from tests.trainer.two_workers import free_ports, live_workers, run_workers
from trainer import rendezvous
from trainer.cluster import Cluster
from ut_keras.errors import UserError

STARTS = """
import sys
from trainer import cluster, devices
from ut_keras.errors import UserError
try:
    devices.start("auto", cluster.from_environment("auto"), float(sys.argv[1]))
except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(1)
"""

MEETS_AND_DIES = """
from trainer import cluster, rendezvous
rendezvous.meet(cluster.from_environment("auto"), 60)
"""


def cluster_of(ports, index):
    return Cluster.of_workers([f"127.0.0.1:{port}" for port in ports], index, "TF_CONFIG")


class Meeting(threading.Thread):
    """A worker of a cluster that comes now.

    Attributes:
        error: text of its UserError, or None.
    """

    def __init__(self, cluster, timeout=20.0):
        super().__init__(daemon=True)
        self.error = None
        self._arguments = cluster, timeout
        self.start()

    def run(self):
        try:
            rendezvous.meet(*self._arguments)
        except UserError as error:
            self.error = str(error)

    def end(self):
        self.join(30.0)
        assert not self.is_alive()
        return self.error


@pytest.fixture
def quick(monkeypatch):
    """Looks for the other workers often."""
    for name, seconds in {"POLL": 0.01, "PORT": 0.2}.items():
        monkeypatch.setattr(rendezvous, f"{name}_SECONDS", seconds)


def test_workers_that_come_one_after_the_other_meet(quick):
    ports = free_ports(3)
    meetings = [Meeting(cluster_of(ports, index)) for index in (2, 0)]
    time.sleep(0.3)
    assert all(meeting.is_alive() for meeting in meetings)
    meetings.append(Meeting(cluster_of(ports, 1)))
    assert [meeting.end() for meeting in meetings] == [None, None, None]


def test_a_worker_alone_meets_nobody(quick):
    rendezvous.meet(cluster_of(free_ports(1), 0), 5.0)


def test_workers_that_do_not_come_are_named(quick):
    ports = free_ports(3)
    start = time.monotonic()
    with pytest.raises(UserError) as error:
        rendezvous.meet(cluster_of(ports, 1), 0.3)
    assert time.monotonic() - start < 5.0
    assert str(error.value) == (
        f"worker 0 (127.0.0.1:{ports[0]}) and worker 2 (127.0.0.1:{ports[2]}) have not started within 0.3 s "
        f"(--worker_timeout), or cannot be reached from worker 1 (127.0.0.1:{ports[1]})"
    )


def test_who_has_given_up_before_is_not_said_to_be_missing(quick):
    ports = free_ports(3)
    meetings = [Meeting(cluster_of(ports, 0), 0.5), Meeting(cluster_of(ports, 1), 1.5)]
    for meeting in meetings:
        assert meeting.end().startswith(f"worker 2 (127.0.0.1:{ports[2]}) has not started")


def test_the_server_of_an_attempt_before_is_not_taken_for_a_worker(quick):
    """A regression test: a worker that is started again meets the others, not what is left of their old processes."""
    with socket.socket() as old:
        old.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        old.bind(("127.0.0.1", 0))
        old.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    with old.accept()[0] as connection:
                        connection.sendall(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00")

        threading.Thread(target=serve, daemon=True).start()
        ports = [old.getsockname()[1], *free_ports(1)]
        meeting = Meeting(cluster_of(ports, 1))
        time.sleep(0.5)
        assert meeting.is_alive()
        old.shutdown(socket.SHUT_RDWR)
    assert Meeting(cluster_of(ports, 0)).end() is None
    assert meeting.end() is None


def test_a_port_that_is_taken_is_said(quick):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"cannot listen at port {port} .Address already in use"):
            rendezvous.meet(cluster_of([port, free_ports(1)[0]], 0), 60.0)


def test_one_index_for_two_processes_is_said(quick):
    ports = free_ports(2)
    meetings = [
        Meeting(cluster_of(ports, 0)),
        Meeting(Cluster((f"127.0.0.1:{ports[1]}", f"127.0.0.1:{ports[0]}"), 0, ("worker 0", "worker 1"), "TF_CONFIG")),
    ]
    lines = [meeting.end() for meeting in meetings]
    assert any("was started as worker number 0 of the list, not 1" in line for line in lines if line)


def test_other_lists_of_workers_are_said(quick):
    ports = free_ports(3)
    first = Meeting(cluster_of(ports[:2], 0))
    second = Meeting(cluster_of(ports, 1))
    assert first.end().startswith("worker 1 has another list of workers than worker 0 (127.0.0.1:")
    assert second.end().startswith("worker 0 has another list of workers than worker 1 (127.0.0.1:")


@pytest.mark.slow
@pytest.mark.parametrize("there", [0, 1])
def test_a_process_whose_peer_never_starts_ends(there):
    ports = free_ports(2)
    (result,) = run_workers(["-c", STARTS, "3"], only=[there], ports=ports, timeout=60)
    assert result.returncode == 1
    missing = 1 - there
    assert f"error: worker {missing} (127.0.0.1:{ports[missing]}) has not started within 3 s" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("dies", [0, 1])
def test_a_peer_that_dies_while_tensorflow_connects_does_not_hang_the_others(dies):
    """A regression test: TensorFlow waits there for ever, with Python's lock held and SIGTERM caught."""
    ports = free_ports(2)
    with contextlib.ExitStack() as stack:
        (other,) = stack.enter_context(live_workers(["-c", MEETS_AND_DIES], only=[dies], ports=ports))
        (worker,) = stack.enter_context(live_workers(["-c", STARTS, "6"], only=[1 - dies], ports=ports))
        result = worker.wait(90)
        assert other.wait(10).returncode == 0
    assert result.returncode == 1
    line = f"the workers have not connected within 6 s; worker {dies} (127.0.0.1:{ports[dies]}) cannot be reached"
    assert line in result.stderr
