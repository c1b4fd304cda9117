"""SIGTERM and Ctrl-C end a run after the step that runs, with everything saved, on all workers at the same step."""

import contextlib
import os
import signal
import tempfile
import threading

import tensorflow as tf

from trainer import agreement


class StopSignal(contextlib.AbstractContextManager):
    """Takes SIGTERM and the first Ctrl-C as a wish to save and stop; the second Ctrl-C stops at once.

    With several workers a signal to any one of them stops all: TensorFlow's PreemptionCheckpointHandler finds the
    step, the next or the one after it, at which every worker is told to stop.

    Args:
        devices: `trainer.devices.Devices`; None is this process alone.
        save: function of `step` that saves; called by all workers at the same step. The chief writes.

    Attributes:
        received: signal.Signals, of this worker or of the one that was told to stop, or None.
    """

    def __init__(self, devices=None, save=None):
        self.received = None
        self._devices = devices if devices and devices.workers > 1 else None
        self._save = save or (lambda step: None)
        self._before = {}
        self._handler = None
        self._stopped = False

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._receive)
        if self._devices:
            self._handler = _handler(self._devices, lambda: self.received is not None, self._save_together)
        return self

    def __exit__(self, kind, error, trace):
        # After an error there may be nobody left to answer the threads of TensorFlow's handler: the process ends.
        if self._handler and kind is None:
            self._handler.__del__()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self, step):
        """Returns whether to stop now, with `save(step)` done. Called by every worker after each training call."""
        if self._handler:
            # The key by which workers agree on a step exists where another one is at the end of the run already.
            with contextlib.suppress(tf.errors.AlreadyExistsError):
                self._handler.save_checkpoint_if_preempted(step)
        elif self.received and not self._stopped:
            self._save(step)
            self._stopped = True
        return self._stopped

    def _save_together(self, step):
        """Is called by TensorFlow on all workers after the same number of checks."""
        self._save(step)
        self.received = self.heard()
        self._stopped = True

    def heard(self):
        """Returns the signal that any of the workers has received, or None; for all of them to call together."""
        if not self._devices:
            return self.received
        received = [int(text) for text in agreement.gather(self._devices, str(int(self.received or 0)))]
        return next((signal.Signals(number) for number in received if number), None)

    def _receive(self, number, frame):
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or signal.Signals(number)  # a second SIGTERM asks for what is being done


class _Handler(tf.distribute.experimental.PreemptionCheckpointHandler):
    """TensorFlow's handler without its noise: a deprecation that only it meets, a thread that outlives its cluster."""

    @property
    def total_run_calls(self):
        return self._run_counter

    def _watch_step_to_save_key(self):
        with contextlib.suppress(tf.errors.OpError):
            super()._watch_step_to_save_key()


def _handler(devices, received, save):
    """Returns TensorFlow's handler, which asks `received()` each second and calls `save(...)` instead of saving.

    It restores the last checkpoint of the manager that it is given, hence the empty one. On machines of Google's cloud
    it would listen to that instead of SIGTERM, or to nothing; that it asks over the network whether it is on one of
    them is kept from it by an address without a host.
    """
    config = tf.distribute.experimental.TerminationConfig(
        termination_watcher_fn=received, exit_fn=lambda: None, grace_period=0, save_fn=save
    )
    before = os.environ.get("GCE_METADATA_IP")
    os.environ["GCE_METADATA_IP"] = ""
    try:
        with tempfile.TemporaryDirectory() as nowhere:
            manager = tf.train.CheckpointManager(tf.train.Checkpoint(), nowhere, max_to_keep=1)
            return _Handler(devices.strategy.cluster_resolver, manager, termination_config=config)
    finally:
        if before is None:
            del os.environ["GCE_METADATA_IP"]
        else:
            os.environ["GCE_METADATA_IP"] = before
