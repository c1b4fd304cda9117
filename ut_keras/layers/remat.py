"""Rematerialisation of one step: its inner tensors are computed again in the backward pass instead of kept."""

import tensorflow as tf

from ut_keras.layers.custom_gradient import custom_gradient


def recompute(function, state, step, seed, context):
    """Returns function(state, step, seed, context), keeping only the arguments for the backward pass.

    Inside tf.while_loop a recomputed function may capture no tensor, so all that it reads, weights and masks
    included, goes in as an argument. tf.recompute_grad would do, but for its warnings about each argument that
    is no float and its failure on boolean masks.

    Args:
        function: (state, step, seed, context) -> nest of tensors; reads no other tensor and no variable.
        state, step, seed: tensors; seed may be None.
        context: a nest of tensors and Nones.
    """
    arguments = (state, step, seed, context)
    flat = tf.nest.flatten(arguments)
    given = [index for index, value in enumerate(flat) if value is not None]

    def call(tensors):
        filled = list(flat)
        for index, tensor in zip(given, tensors, strict=True):
            filled[index] = tensor
        return function(*tf.nest.pack_sequence_as(arguments, filled))

    @custom_gradient
    def run(*tensors):
        def gradient(*upstream):
            # Without waiting for its gradient, every step would be recomputed at once and kept.
            with tf.control_dependencies([one for one in upstream if one is not None]):
                held = [tf.identity(tensor) for tensor in tensors]
            floats = [tensor for tensor in held if tensor.dtype.is_floating]
            with tf.GradientTape() as tape:
                tape.watch(floats)
                again = tf.nest.flatten(call(held))
            gradients = iter(tape.gradient(again, floats, output_gradients=list(upstream)))
            return [next(gradients) if tensor.dtype.is_floating else None for tensor in tensors]

        return call(tensors), gradient

    return run(*[flat[index] for index in given])
