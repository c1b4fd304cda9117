"""Settings of every test run: one thread per process, a quiet TensorFlow, fresh global Keras state."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")  # tiny tensors: more threads only wait for each other
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ["KERAS_BACKEND"] = "tensorflow"

import numpy as np  # noqa: E402
import pytest  # noqa: E402

pytest.register_assert_rewrite("tests.layer_checks")


@pytest.fixture
def rng():
    """A numpy generator with a fixed seed."""
    return np.random.default_rng(20180710)


@pytest.fixture(autouse=True)
def _fresh_keras():
    """Starts every test from one seed and undoes what it did to the global dtype policy; imports nothing itself."""
    keras = sys.modules.get("keras")
    if keras:
        keras.utils.set_random_seed(20180710)
    yield
    keras = sys.modules.get("keras")
    if keras:
        keras.mixed_precision.set_global_policy("float32")
