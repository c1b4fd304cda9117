"""Where and in which precision a run computes."""

import contextlib

import keras
import tensorflow as tf


def choose_strategy(name):
    """Returns the `tf.distribute` strategy that --strategy names.

    Args:
        name: "one_device"; "mirrored": all GPUs of this machine, or its (virtual) CPUs where it has no
            GPU; "auto": mirrored where there are two GPUs or more.
    """
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:  # all of them, before the first use: a later or a partial setting is ignored or an error
        with contextlib.suppress(RuntimeError):
            tf.config.experimental.set_memory_growth(gpu, True)
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.get_strategy()


@contextlib.contextmanager
def precision(policy):
    """Builds what is built inside under the Keras dtype policy `policy`; "none" is float32."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32" if policy == "none" else policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def describe(strategy):
    """Returns one line that names the devices: "2 x GPU"."""
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return f"{strategy.num_replicas_in_sync} x {kind}"
