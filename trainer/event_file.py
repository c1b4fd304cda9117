"""One file of TensorBoard events, written at once and in order, with the errors of a user."""

import contextlib
import os
import pathlib
import socket
import time

from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from ut_keras.errors import UserError

_NAME = "events.out.tfevents."


class EventFile:
    """A new event file in a directory, behind those that are there.

    TensorBoard reads the files of a directory in the order of their names, and each from its beginning to its end. A
    file that begins with the start of a session makes it forget the points at and behind that step which it has read
    before, so that a curve goes on where a run did. TensorFlow's own writer knows no such start, and reports a full
    disk late or not at all.

    Args:
        directory: of the run's events; made where it is not there.
        first_step: what other files hold of this step and later ones is superseded.

    Raises:
        UserError: the file cannot be written: no room, no right, or no directory.
    """

    def __init__(self, directory, first_step):
        directory = pathlib.Path(directory)
        self._file = None
        self.path = directory / _NAME
        with self._errors():
            directory.mkdir(parents=True, exist_ok=True)
            self.path = directory / f"{_NAME}{_stamp(directory):010d}.{socket.gethostname()}.{os.getpid()}"
            self._file = open(self.path, "xb")  # noqa: SIM115 (closed by `close`)
        self._records = RecordWriter(self._file)
        self._write(event_pb2.Event(file_version="brain.Event:2"))
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(event_pb2.Event(session_log=start, step=first_step))

    def write(self, step, summary):
        """Writes a `Summary` at a step; it is in the file when this returns."""
        self._write(event_pb2.Event(summary=summary, step=step))

    def close(self):
        """Closes the file; does nothing the second time."""
        if self._file is not None:
            with self._errors():
                self._file.close()
            self._file = None

    def _write(self, event):
        event.wall_time = time.time()
        with self._errors():
            self._records.write(event.SerializeToString())
            self._records.flush()

    @contextlib.contextmanager
    def _errors(self):
        try:
            yield
        except OSError as error:
            file, self._file = self._file, None
            if file is not None:
                file.raw.close()  # without what could not be written
            raise UserError(
                f"{self.path} cannot be written: {error.strerror}; the checkpoints are as they were: make room and "
                "start the same command again"
            ) from None


def _stamp(directory):
    """Returns the time, or a second more than the newest file's: clocks of two machines, or one set back, differ."""
    stamps = [path.name.removeprefix(_NAME).split(".")[0] for path in directory.glob(f"{_NAME}*")]
    return max([int(time.time()), *(int(stamp) + 1 for stamp in stamps if stamp.isdigit())])
