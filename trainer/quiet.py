"""Importing TensorFlow without the lines that its C++ side writes before any setting can stop it."""

import os
import tempfile


def import_tensorflow():
    """Imports TensorFlow and looks for its devices; what that writes to standard error is dropped.

    Set TF_CPP_MIN_LOG_LEVEL to 0 or 1 to see it all. If the import fails, everything is shown.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        return
    with tempfile.TemporaryFile() as held:
        stderr = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            import tensorflow as tf

            tf.config.list_physical_devices()
        except BaseException:
            held.seek(0)
            os.write(stderr, held.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
