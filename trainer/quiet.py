"""TensorFlow without the lines that its C++ side writes before any setting can stop it."""

import contextlib
import os
import sys
import tempfile


def import_tensorflow():
    """Imports TensorFlow and looks for its devices; what that writes to standard error is dropped.

    Set TF_CPP_MIN_LOG_LEVEL to 0 or 1 to see it all. If the import fails, everything is shown.
    """
    with silence():
        import tensorflow as tf

        tf.config.list_physical_devices()


@contextlib.contextmanager
def silence():
    """Drops what is written to the standard error of the process, by C++ too; if it fails inside, all is shown."""
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        yield
        return
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        stderr = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(stderr, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
