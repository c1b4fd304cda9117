"""tf.custom_gradient for functions that are traced again and again in one process."""

import contextlib
import weakref

import tensorflow as tf
from tensorflow.python.framework import ops


def custom_gradient(function):
    """Returns `function` with a gradient of its own, exactly as tf.custom_gradient does, but lets go of its graphs.

    In a graph TensorFlow registers the gradient of every single call under a name of its own in a table that nothing
    is ever taken from. What is registered holds the tensors of the call, hence the graph, hence all graphs around it:
    every training step, answer or export that a process ever traced stays in memory
    (tests/benchmarks/traced_memory.py). Here the graph holds its gradients itself and the table points to them weakly.

    Args:
        function: as for tf.custom_gradient: (*tensors) -> (result, gradient function), reading no variables.

    Source: tensorflow/python/ops/custom_gradient.py (_graph_mode_decorator) of TensorFlow 2.20 and 2.21, whose table
    has no public name; where another version has none at all, this is tf.custom_gradient.
    """
    run = tf.custom_gradient(function)

    @tf.autograph.experimental.do_not_convert
    def call(*tensors):
        result = run(*tensors)
        if not tf.executing_eagerly():
            _own(tf.nest.flatten(result)[0].op)
        return result

    return call


@contextlib.contextmanager
def never_differentiated():
    """Forgets, at its end, the custom gradients that others made in its block: nobody may ask for them any more.

    Optimizers and reductions over replicas make them, since TensorFlow's merge_call is one.
    """
    table = _table()
    before = set(table)
    try:
        yield
    finally:
        for name in set(table) - before:
            gradient = table.get(name, {}).get("type")
            if name.startswith("CustomGradient-") and getattr(gradient, "__module__", None) != __name__:
                table.pop(name, None)


def _table():
    """Returns TensorFlow's {name of a gradient: {"type": its function, ...}}; an empty one where it has none."""
    table = getattr(getattr(ops, "gradient_registry", None), "_registry", None)
    return table if isinstance(table, dict) else {}


def _own(op):
    """Moves the gradient of a custom gradient's operation from TensorFlow's table to the operation's graph."""
    table = _table()
    if not table:
        return
    name, graph = op.get_attr("_gradient_op_type").decode(), op.graph
    gradient = table[name]["type"]
    graph._ut_keras_gradients = (*getattr(graph, "_ut_keras_gradients", ()), gradient)
    found = weakref.ref(gradient, lambda _: table.pop(name, None))

    def ask(op, *upstream):
        return found()(op, *upstream)

    table[name]["type"] = ask
