"""A profile of some training steps: `--profile=START,COUNT`."""

import contextlib

import tensorflow as tf

from ut_keras.errors import UserError


class Profile:
    """Writes TensorFlow's profile of the updates START .. START + COUNT - 1; a context manager.

    The files are `plugins/profile/<time>/<host>.xplane.pb` below the directory of the run's events, where TensorBoard's
    profile plugin (package `xprof`) looks for them; without the plugin TensorBoard shows everything else as ever. Of
    updates that were made before a restart nothing is written. Where a call of the training function makes several
    updates, calls should begin and end with the window.

    Args:
        directory: where the events go, `<run directory>/tb`.
        window: (START, COUNT), counted from 1; both 1 or more.
        devices: names of this process's devices, whose work is waited for at both ends.

    Raises:
        UserError: by `update` and `close`: the profile cannot be written, or another is being made.
    """

    def __init__(self, directory, window, devices=("CPU:0",)):
        self._directory = str(directory)
        self._devices = devices
        first, count = window
        self._first, self._last = first, first + count - 1
        self._step = None  # the Trace of the call that is being made, while profiling

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        elif self._step is not None:  # devices may have failed: nothing is waited for, and that error is the one to see
            self._step.__exit__(None, None, None)
            self._step = None
            tf.profiler.experimental.stop(save=False)

    def update(self, step):
        """Is told, before each call of the training function, how many updates have been made; starts and stops."""
        if step >= self._last:
            self.close()
        elif step >= self._first - 1:
            if self._step is None:
                self._start()
            else:
                self._step.__exit__(None, None, None)
            # The plugin divides the time into steps by these marks.
            self._step = tf.profiler.experimental.Trace("train", step_num=step + 1, _r=1)
            self._step.__enter__()

    def close(self):
        """Writes the profile if one is being made."""
        if self._step is not None:
            # What was started is to be finished in the profile: devices may still be at work.
            self._wait()
            self._step.__exit__(None, None, None)
            self._step = None
            with self._errors():
                tf.profiler.experimental.stop()

    def _start(self):
        self._wait()
        with self._errors():
            tf.profiler.experimental.start(self._directory)

    def _wait(self):
        for device in self._devices:  # tf.test.experimental.sync_devices takes other workers' devices for its own
            with tf.device(device):
                tf.raw_ops.SyncDevice()

    @contextlib.contextmanager
    def _errors(self):
        try:
            yield
        except tf.errors.OpError as error:
            reason = error.message.splitlines()[0]
            raise UserError(f"--profile: the profile in {self._directory} cannot be written: {reason}") from None


def missed(window, step, total):
    """Returns why no update of a window will be made by a run that is at `step` of `total`; None where one will."""
    first, count = window
    if first > total:
        return f"the run ends at step {total}"
    return f"the run is at step {step} already" if step >= first + count - 1 else None
