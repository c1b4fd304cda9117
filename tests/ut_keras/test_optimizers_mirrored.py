"""Two replicas, and a loop of steps in one call, make the same updates and skip the same ones as one device.

In a process of its own: virtual devices come before anything else.
"""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

PROGRAM = """
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras
from ut_keras import optimizers
from ut_keras.hparams import HParams

rng = np.random.default_rng(0)
start = [rng.normal(size=shape).astype("float32") for shape in ([3, 4], [4])]
gradients = [rng.normal(size=[5, *shape]).astype("float32") for shape in ([3, 4], [4])]
gradients[0][2, 1, 1] = np.nan
hparams = HParams(
    learning_rate_schedule="constant*linear_warmup", learning_rate_constant=0.1, learning_rate_warmup_steps=3,
    weight_decay=0.1, optimizer_adafactor_beta1=0.5,
)

def state(optimizer, weights):
    parts = optimizers.slots(optimizer) + optimizers.averages(optimizer) + optimizers.loss_scale_state(optimizer)
    return [variable.numpy() for variable in weights + parts]

def train(name, guard, strategy, in_one_call):
    # Returns the state after each update; after the last one alone where they are made in one call.
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        optimizer = optimizers.from_hparams(hparams.override({"optimizer": name}), ema_decay=0.75)
        optimizer = optimizers.guarded(optimizer, **guard)
        weights = [keras.Variable(value, name=part) for value, part in zip(start, ("kernel", "bias"))]
        optimizer.build(weights)

    def update(gradient):
        context = tf.distribute.get_replica_context()
        gradient = [optimizer.scale_loss(part) / replicas for part in gradient]
        if replicas > 1:
            gradient = context.all_reduce("SUM", gradient)
        optimizer.apply([part / replicas for part in gradient], weights)

    @tf.function
    def one(index):
        strategy.run(update, args=([part[index] for part in gradients],))

    @tf.function
    def all_of_them():
        tf.while_loop(lambda index: index < 5, lambda index: [one(index), index + 1][1:], [tf.constant(0)])

    if in_one_call:
        all_of_them()
        return [state(optimizer, weights)]
    states = []
    for index in range(5):
        one(tf.constant(index))
        states.append(state(optimizer, weights))
    return states

gradients = [tf.constant(part) for part in gradients]
cross_device = tf.distribute.ReductionToOneDevice()
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=cross_device)
one_device = tf.distribute.get_strategy()
for name in ("adam", "adafactor"):
    for guard in ({"on_nan": "skip"}, {"mixed_float16": True}):
        expected = train(name, guard, one_device, False)
        own = 2 if "mixed_float16" in guard else 0  # the loss scale and its counter, which do change
        kept = len(expected[0]) - own
        assert all(np.array_equal(a, b) for a, b in zip(expected[1][:kept], expected[2]))
        assert [int(values[2]) for values in expected] == [1, 2, 2, 3, 4], "updates made"
        assert not np.array_equal(expected[2][0], expected[3][0])
        for strategy, in_one_call in ((mirrored, False), (mirrored, True), (one_device, True)):
            result = train(name, guard, strategy, in_one_call)
            for values, references in zip(result[::-1], expected[::-1]):
                for value, reference in zip(values, references, strict=True):
                    np.testing.assert_allclose(value, reference, rtol=1e-6, err_msg=f"{name} {guard} {in_one_call}")
"""


@pytest.mark.slow
def test_two_replicas_and_one_call_of_many_steps_equal_one_device():
    result = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
