"""A signal saves and stops: one process, and two workers at the same step."""

import os
import signal
import socket
import types

import pytest

from tests.trainer.two_workers import live_workers
from trainer import stopping
from trainer.stopping import StopSignal

PROGRAM = """
import sys, time
from trainer import agreement, cluster, devices, peers, stopping
import tensorflow as tf

there = devices.start("auto", cluster.from_environment("auto"), 60)

def save(step):
    time.sleep(1.0)
    print("saved" if there.chief else "asked to save", step, flush=True)

steps = int(sys.argv[1])
with peers.Watch(there.cluster, 60), stopping.StopSignal(there, save) as stop:
    for step in range(1, steps + 1):
        agreement.barrier(there)
        time.sleep(0.02)
        if step == 5:
            print("training", flush=True)
        if stop.check(step):
            print("stopped", step, stop.received.name, flush=True)
            sys.exit(128 + stop.received)
    agreement.barrier(there)
print("end", flush=True)
"""


def test_a_signal_is_a_wish_to_save_once_and_stop():
    saved = []
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopSignal(save=saved.append) as stop:
        assert not stop.check(1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert saved == []
        assert stop.check(2)
        assert stop.check(3)
        assert stop.received is signal.SIGTERM
    assert saved == [2]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_second_sigterm_does_not_disturb_the_save_that_the_first_asked_for():
    saved = []

    def save(step):
        os.kill(os.getpid(), signal.SIGTERM)
        saved.append(step)

    with StopSignal(save=save) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.check(7)
    assert saved == [7]
    assert stop.received is signal.SIGTERM


def test_the_second_ctrl_c_stops_at_once():
    with pytest.raises(KeyboardInterrupt), StopSignal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.received is signal.SIGINT
        os.kill(os.getpid(), signal.SIGINT)


def test_tensorflows_handler_asks_nobody_where_it_runs(monkeypatch):
    """A regression test: it looks for a machine of a cloud in the network, for 5 s, and behaves otherwise on one."""
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **_: asked.append(arguments) or [])
    monkeypatch.delenv("GCE_METADATA_IP", raising=False)
    alone = types.SimpleNamespace(strategy=types.SimpleNamespace(cluster_resolver=None))
    handler = stopping._handler(alone, lambda: False, lambda step: None)
    handler.save_checkpoint_if_preempted(1)
    handler.__del__()
    assert asked == []
    assert "GCE_METADATA_IP" not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize(
    "told, number", [([0], signal.SIGTERM), ([1], signal.SIGTERM), ([0, 1], signal.SIGTERM), ([1], signal.SIGINT)]
)
def test_a_signal_to_any_worker_stops_all_at_one_step_and_all_are_asked_to_save(told, number):
    with live_workers(["-c", PROGRAM, "100000"]) as workers:
        for worker in workers:
            worker.wait_for("training")
        for index in told:
            workers[index].send(number)
        chief, other = [worker.wait(60) for worker in workers]
    assert chief.returncode == other.returncode == 128 + number, chief.stderr + other.stderr
    _, saved, stopped = chief.stdout.splitlines()
    step = saved.removeprefix("saved ")
    assert stopped == f"stopped {step} {number.name}"
    assert other.stdout.splitlines() == ["training", f"asked to save {step}", stopped]
    for result in (chief, other):
        assert "Traceback" not in result.stderr
        assert "deprecated" not in result.stderr


@pytest.mark.slow
def test_a_run_that_no_signal_reaches_ends_by_itself():
    with live_workers(["-c", PROGRAM, "20"]) as workers:
        for result in [worker.wait(60) for worker in workers]:
            assert result.returncode == 0, result.stderr[-3000:]
            assert result.stdout.splitlines() == ["training", "end"]
