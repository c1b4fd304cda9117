"""Traces of a recurrence: what each step saw, in preallocated tensors [T, ...].

Legend: B batch, L length, S memory length, D hidden size, H heads, T steps, R blocks of a step.
"""

import tensorflow as tf

from ut_keras.layers.inplace import put_entry


def empty_traces(x, steps, halts, trace):
    """Returns {name: [T, B, L, ...]}; a step that is not run leaves halting probability 1, all else 0.

    Args:
        x: [B, L, D], the recurrence's input.
        steps: T.
        halts: whether there is halting, whose accumulated probability is always traced.
        trace: whether all else is.
    """
    shape = tf.shape(x)
    wide = tf.zeros(tf.concat([[steps], shape], 0), x.dtype)
    flat = tf.zeros(tf.concat([[steps], shape[:2]], 0), tf.float32)
    traces = {"halting_probability": tf.ones_like(flat)} if halts else {}
    if trace:
        traces |= {"pre_state": wide, "state": wide}
        if halts:
            traces |= {"probability": flat, "remainders": flat, "ponder_times": flat, "output": wide}
    return traces


def attention_traces(blocks, contexts, steps, x):
    """Returns {name: zeros [T, R, B, H, L, L or S] float32} for the attention weights of prepared `blocks`."""
    batch, length = tf.unstack(tf.shape(x)[:2])

    def zeros(keys):
        return tf.zeros([steps, len(blocks), batch, blocks[0].self_attention.num_heads, length, keys])

    traces = {"self_attention": zeros(length)}
    if "encdec" in contexts[0]:
        traces["encdec_attention"] = zeros(tf.shape(contexts[0]["encdec"].keys)[3])
    return traces


def record(traces, step, seen):
    """Returns the traces with what was `seen` at a step, {name: tensor}; names that are not traced are left out."""
    return {name: put_entry(kept, tf.stop_gradient(seen[name]), step) for name, kept in traces.items()}
