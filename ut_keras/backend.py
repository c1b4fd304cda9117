"""Keras runs on TensorFlow here, or not at all. Standard library only."""

import os
import sys

from ut_keras.errors import UserError


def require_tensorflow():
    """Makes TensorFlow the backend of a Keras that is not imported yet; UserError if another one was chosen."""
    keras = sys.modules.get("keras")
    chosen = keras.config.backend() if keras else os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    if chosen != "tensorflow":
        raise UserError(f"Keras' backend is {chosen!r} and ut_keras runs on TensorFlow: set KERAS_BACKEND=tensorflow")
