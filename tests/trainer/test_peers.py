"""A worker that is lost is named in bounded time; one that computes is left alone."""

import contextlib
import signal
import socket
import threading
import time

import pytest
import tensorflow as tf

from tests.trainer.two_workers import free_ports, live_workers, run_workers
from trainer import peers
from trainer.cluster import Cluster
from ut_keras.errors import UserError

TRAINING = """
import os, sys, time
from trainer import agreement, cluster, devices, peers
from ut_keras.errors import UserError
import tensorflow as tf

mode = sys.argv[1]
limit = float(sys.argv[2])
try:
    there = devices.start("auto", cluster.from_environment("auto"), limit)
    with peers.Watch(there.cluster, limit):
        for step in range(10**6):
            agreement.barrier(there)
            if step == 0:
                print("training", flush=True)
            time.sleep(0.02)
            if mode == "evaluates" and step == 10:
                print("evaluates", flush=True)
                time.sleep(20 * there.chief)
            if mode in ("ends", "evaluates") and step == 20:
                break
            if mode == "fails" and there.worker == 1 and step == 20:
                raise UserError("this one fails")
        agreement.barrier(there)
    if mode == "ends":
        time.sleep(8 * there.worker)  # the other has long ended
    print("done", flush=True)
except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(1)
"""


def cluster_of(ports, index):
    return Cluster.of_workers([f"127.0.0.1:{port}" for port in ports], index, "TF_CONFIG")


@contextlib.contextmanager
def listening(answer=None):
    """Gives the port of a server that answers each connection with `answer`, or that says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection = server.accept()[0]
                    if answer:
                        connection.sendall(answer)
                    kept.append(connection)

        kept = []
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for connection in kept:
            connection.close()


@pytest.fixture
def quick(monkeypatch):
    """Looks at the other workers often."""
    for name, seconds in {"WATCH": 0.05, "ANSWER": 0.1, "LATE": 0.3}.items():
        monkeypatch.setattr(peers, f"{name}_SECONDS", seconds)


@pytest.fixture
def ended(monkeypatch):
    """The list of the exit codes with which the watch has ended this process."""
    codes = []
    monkeypatch.setattr(peers.os, "_exit", codes.append)
    return codes


def test_a_server_answers_and_a_stopped_process_does_not():
    with listening(b"\x00") as port:
        assert peers.answers(f"127.0.0.1:{port}", 5.0)
    with listening() as port:
        assert not peers.answers(f"127.0.0.1:{port}", 0.1)
    assert not peers.answers(f"127.0.0.1:{free_ports(1)[0]}", 5.0)


def test_silence_ends_the_process_where_tensorflow_does_not(quick, ended, capsys):
    with listening() as port:
        start = time.monotonic()
        with peers.Watch(cluster_of([free_ports(1)[0], port], 0), 0.5):
            while not ended and time.monotonic() - start < 10.0:
                time.sleep(0.02)
        assert 0.5 < time.monotonic() - start < 5.0
    assert ended[0] == 1
    line = f"trainer: error: worker 1 (127.0.0.1:{port}) does not answer any more (ended, stopped or cut off); "
    assert capsys.readouterr().err.startswith(line)


def test_a_worker_that_ends_after_the_last_barrier_is_no_alarm(quick, ended, capsys):
    with listening(b"\x00") as port, peers.Watch(cluster_of([free_ports(1)[0], port], 0), 0.2):
        time.sleep(0.5)
    time.sleep(0.5)
    assert ended == []
    assert capsys.readouterr().err == ""


def test_an_error_of_tensorflow_names_the_worker_that_fell_silent_first(quick):
    with contextlib.ExitStack() as stack:
        ports = [free_ports(1)[0], *(stack.enter_context(listening(b"\x00")) for _ in range(2)), free_ports(1)[0]]
        stack.enter_context(pytest.raises(UserError, match=rf"^worker 3 .127.0.0.1:{ports[3]}. does not answer any"))
        stack.enter_context(peers.Watch(cluster_of(ports, 0), 60.0))
        raise tf.errors.UnavailableError(None, None, "Connection reset by peer")


@pytest.mark.parametrize("kind", [tf.errors.UnavailableError, tf.errors.ResourceExhaustedError])
def test_an_error_while_all_answer_stays_as_it_is(quick, kind):
    with listening(b"\x00") as port, pytest.raises(kind), peers.Watch(cluster_of([free_ports(1)[0], port], 0)):
        raise kind(None, None, "no memory")


def test_an_error_of_the_user_is_not_taken_for_a_lost_worker(quick):
    ports = free_ports(2)
    with pytest.raises(UserError, match="^the loss is nan$"), peers.Watch(cluster_of(ports, 0)):
        raise UserError("the loss is nan")


def test_one_process_watches_nobody():
    with peers.Watch(None):
        pass
    with pytest.raises(tf.errors.UnavailableError), peers.Watch(cluster_of([1], 0)):
        raise tf.errors.UnavailableError(None, None, "")


@pytest.mark.slow
@pytest.mark.parametrize("number, lost", [(signal.SIGKILL, 1), (signal.SIGKILL, 0), (signal.SIGSTOP, 1)])
def test_a_worker_that_is_lost_in_training_is_named(number, lost):
    ports = free_ports(2)
    with live_workers(["-c", TRAINING, "-", "60"], ports=ports) as workers:
        for worker in workers:
            worker.wait_for("training")
        workers[lost].send(number)
        result = workers[1 - lost].wait(50)
    assert result.returncode == 1
    assert f"error: worker {lost} (127.0.0.1:{ports[lost]}) does not answer any more" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_worker_that_dies_while_the_chief_is_away_ends_the_chief_too():
    """TensorFlow says nothing before the next collective: the watch ends the process after 6 s of silence."""
    ports = free_ports(2)
    with live_workers(["-c", TRAINING, "evaluates", "6"], ports=ports) as (chief, worker):
        chief.wait_for("evaluates")
        worker.send(signal.SIGKILL)
        start = time.monotonic()
        result = chief.wait(40)
        assert time.monotonic() - start < 18.0
    assert result.returncode == 1
    assert f"trainer: error: worker 1 (127.0.0.1:{ports[1]}) does not answer any more" in result.stderr


@pytest.mark.slow
def test_a_worker_that_fails_is_named_by_the_other():
    chief, failed = run_workers(["-c", TRAINING, "fails", "60"], timeout=90)
    assert failed.returncode == 1
    assert "error: this one fails" in failed.stderr
    assert chief.returncode == 1
    assert "error: worker 1 (" in chief.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["evaluates", "ends"])
def test_long_waits_and_the_normal_end_are_no_alarm(mode):
    """The limit of silence is 6 s; the chief is away for 20 s, or has ended 8 s before the other."""
    for result in run_workers(["-c", TRAINING, mode, "6"], timeout=120):
        assert result.returncode == 0, result.stderr[-3000:]
        assert "done" in result.stdout
