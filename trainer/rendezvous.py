"""All workers meet before TensorFlow connects them, so that one that does not come is named in bounded time.

TensorFlow alone waits for ever: with a worker missing the strategy's constructor does not return, holds Python's lock
and does not listen to SIGTERM. Standard library only.
"""

import contextlib
import errno
import faulthandler
import hashlib
import os
import socket
import subprocess
import sys
import threading
import time

from ut_keras.errors import UserError

POLL_SECONDS = 0.2  # between two looks for workers that have not come
PORT_SECONDS = 10.0  # in which the process of an attempt before lets go of this worker's port
CONNECT_SECONDS = 2.0
REPLY_SECONDS = 10.0  # a process that listens replies, however busy its machine is


def meet(cluster, timeout):
    """Returns when this worker has met all others at their addresses, which TensorFlow takes over afterwards.

    Two workers have met once one has sent its name and the list of workers and the other has sent its own back. So both
    know it, and what else may listen at an address is not taken for a worker: TensorFlow's server in the process of an
    attempt before, which has not ended yet.

    Args:
        cluster: `trainer.cluster.Cluster`.
        timeout: seconds to wait.

    Raises:
        UserError: names the workers that have not started in time; or this worker's port is taken, or another process
            is the same worker, or has another list of workers.
    """
    end = time.monotonic() + timeout
    met = {}  # index of a worker: its digest of the list of workers
    with _listening(cluster, min(timeout, PORT_SECONDS)) as listener, _serving(listener, cluster, met):
        while missing := [index for index in others(cluster) if index not in met]:
            for index in missing:
                if said := _call(cluster.addresses[index], _greeting(cluster)):
                    _refuse_other_index(cluster, index, said[0])
                    met[index] = said[1]
            _refuse_other_list(cluster, met)
            if time.monotonic() > end:
                missing = [index for index in missing if index not in met]
                break
            time.sleep(POLL_SECONDS)
    _refuse_other_list(cluster, met)
    if missing:
        raise UserError(
            f"{names(cluster, missing)} {'have' if len(missing) > 1 else 'has'} not started within {timeout:g} s "
            f"(--worker_timeout), or cannot be reached from {cluster.named(cluster.index)}"
        )


@contextlib.contextmanager
def forming(cluster, timeout):
    """Bounds the time that TensorFlow takes to connect the workers: ends this process, exit code 1, with one line.

    Python's threads stand still meanwhile. So a small process of its own prints the line, and a timer of the
    interpreter's that needs no lock ends this one.
    """
    words = [str(timeout), cluster.named(cluster.index)]
    words += [word for index in others(cluster) for word in (cluster.addresses[index], cluster.named(index))]
    helper = subprocess.Popen([sys.executable, "-S", "-c", LAST_WORDS, *words], stdin=subprocess.PIPE)
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(timeout + 5, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            helper.kill()
            helper.wait()
            helper.stdin.close()


LAST_WORDS = """
import select, socket, sys
timeout, own, *others = sys.argv[1:]
if not select.select([sys.stdin], [], [], float(timeout))[0]:  # readable: the process that waits has ended
    lost = []
    for address, name in zip(others[::2], others[1::2]):
        host, port = address.rsplit(":", 1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), 2).close()
        except OSError:
            lost.append(name)
    reason = f"{', '.join(lost)} cannot be reached any more" if lost else "all can be reached"
    line = f"trainer: error: {own}: the workers have not connected within {float(timeout):g} s; {reason}"
    print(line, file=sys.stderr)
"""


def others(cluster):
    """Returns the indices of the workers that this process is not."""
    return [index for index in range(len(cluster.addresses)) if index != cluster.index]


def names(cluster, indices):
    """Returns the workers' names and addresses in one phrase."""
    return " and ".join(cluster.named(index) for index in indices)


def split(address):
    """Returns (host, port) of "host:port"."""
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


def _greeting(cluster):
    """Returns the line by which a worker makes itself known: its index and a digest of the list of workers."""
    digest = hashlib.sha256(" ".join(cluster.names + cluster.addresses).encode()).hexdigest()[:16]
    return f"ut_keras {cluster.index} {digest}\n".encode()


def _call(address, greeting):
    """Returns what the worker at an address says, (index, digest); None where there is none."""
    try:
        with socket.create_connection(split(address), CONNECT_SECONDS) as connection:
            connection.settimeout(REPLY_SECONDS)
            connection.sendall(greeting)
            return _read(connection)
    except OSError:
        return None


def _read(connection):
    words = connection.makefile("rb").readline(64).split()
    if len(words) != 3 or words[0] != b"ut_keras" or not words[1].isdigit():
        return None
    return int(words[1]), words[2].decode(errors="replace")


def _refuse_other_index(cluster, index, says):
    if says != index:
        raise UserError(
            f"{cluster.named(index)} was started as worker number {says} of the list, not {index}: "
            "give each worker an index of its own"
        )


def _refuse_other_list(cluster, met):
    digest = _greeting(cluster).split()[2].decode()
    for index, other in list(met.items()):
        if other != digest:
            name = cluster.names[index] if index < len(cluster.names) else f"worker number {index}"
            own = cluster.named(cluster.index)
            raise UserError(f"{name} has another list of workers than {own}: give all of them the same")


@contextlib.contextmanager
def _serving(listener, cluster, met):
    """Replies to those who call, in a thread, and enters them in `met`."""
    stop = threading.Event()

    def serve():
        while not stop.is_set():
            with contextlib.suppress(OSError):  # also the time-out, after which `stop` is looked at
                connection = listener.accept()[0]
                with connection:
                    connection.settimeout(REPLY_SECONDS)
                    if said := _read(connection):
                        connection.sendall(_greeting(cluster))
                        met[said[0]] = said[1]

    thread = threading.Thread(target=serve, name="rendezvous", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(CONNECT_SECONDS)


@contextlib.contextmanager
def _listening(cluster, patience):
    """Listens at this worker's port, on all interfaces, as TensorFlow will; gives the socket."""
    host, port = split(cluster.addresses[cluster.index])
    end = time.monotonic() + patience
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        while True:
            try:
                listener.bind(("", port))
                listener.listen(512)
                break
            except OSError as error:
                if time.monotonic() > end or error.errno != errno.EADDRINUSE:
                    raise UserError(
                        f"{cluster.named(cluster.index)} cannot listen at port {port} ({error.strerror}): "
                        "end the process that has it, or give this worker another port"
                    ) from None
            time.sleep(POLL_SECONDS)
        listener.settimeout(POLL_SECONDS)
        yield listener
