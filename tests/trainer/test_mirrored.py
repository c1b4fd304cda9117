"""Two replicas take the same step as one device. In a process of its own: virtual devices come before anything else."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

PROGRAM = """
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer import devices
from tests.trainer.test_step import A, B, HPARAMS, SEQUENCE, SPEC, batch_of, distance, run
from trainer import step as steps
from ut_keras.models.build import build_model
import keras

hparams = HPARAMS.override("clip_grad_norm=0.1,optimizer_adam_epsilon=1e-6")
batches = [batch_of(A, B, A), batch_of(B), batch_of(A, A, B, B), batch_of(B, A)]
weights, results = run(batches, hparams)

strategy = devices.start("mirrored").strategy
keras.utils.set_random_seed(7)
with strategy.scope():
    model = build_model(hparams, SEQUENCE)
    optimizer = steps.make_optimizer(hparams, model)
train_step = steps.TrainStep(model, optimizer, hparams, SPEC, strategy)
for index, batch in enumerate(batches):
    mirrored = train_step(batch, tf.constant(index, tf.int64))
    for name, value in results[index].items():
        np.testing.assert_allclose(float(mirrored[name]), value, rtol=2e-5, err_msg=f"{name}, step {index}")
assert distance(weights, [weight.numpy() for weight in model.trainable_variables]) < 1e-4
"""


@pytest.mark.slow  # a process of its own, three compiled steps
def test_two_replicas_equal_one_device_also_with_uneven_and_empty_shards():
    result = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
