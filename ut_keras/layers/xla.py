"""Whether what is being traced will be compiled by XLA, which takes no shape that depends on values."""

from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_util


def compiles_with_xla():
    """Returns True while a function with `jit_compile=True`, or the body of a TPU's step, is traced."""
    return control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph())
