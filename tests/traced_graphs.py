"""Which graphs of TensorFlow outlive what they were traced for."""

import contextlib
import gc
import weakref

import keras
from tensorflow.python.framework import ops


@contextlib.contextmanager
def gone():
    """Asserts that no graph is alive at its end that was not at its beginning."""
    before = weakref.WeakSet(alive())  # of other tests: they may go, but no new one may come
    yield
    left = [graph for graph in alive() if graph not in before]
    assert left == [], f"{len(left)} graphs: {[getattr(graph, 'name', '?') for graph in left]}"


def alive():
    """Returns the graphs that something holds, but for the one that Keras keeps for symbolic calls."""
    keras.backend.clear_session()
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, ops.Graph)]
