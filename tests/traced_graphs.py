"""Which graphs of TensorFlow outlive what they were traced for."""

import contextlib
import gc

import keras
from tensorflow.python.framework import ops


@contextlib.contextmanager
def gone():
    """Asserts that no graph is alive at its end that was not at its beginning."""
    before = {id(graph) for graph in _alive()}  # of other tests: they may go, but no new one may come
    yield
    left = [graph for graph in _alive() if id(graph) not in before]
    assert left == [], f"{len(left)} graphs: {[getattr(graph, 'name', '?') for graph in left]}"


def _alive():
    keras.backend.clear_session()  # Keras keeps one graph for symbolic calls
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, ops.Graph)]
