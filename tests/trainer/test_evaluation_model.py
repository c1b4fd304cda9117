"""What is scored while training goes on: the model itself, or a copy with the averages of its weights."""

import numpy as np
import pytest
import tensorflow as tf

from tests.trainer.test_step import HPARAMS, SEQUENCE, A, B, batch_of
from trainer.evaluation_model import EvaluationModel
from trainer.step import TrainStep, make_optimizer
from ut_keras import optimizers
from ut_keras.models.build import build_model


def trained(ema_decay):
    """Returns (model, optimizer) after two updates."""
    model = build_model(HPARAMS, SEQUENCE)
    optimizer = make_optimizer(HPARAMS, model, ema_decay)
    step = TrainStep(model, optimizer, HPARAMS, {name: tf.TensorSpec([None, None], tf.int32) for name in batch_of(A)})
    for index in range(2):
        step(batch_of(A, B), index)
    return model, optimizer


def test_one_device_without_averages_scores_the_model_that_trains():
    model = build_model(HPARAMS, SEQUENCE)
    copy = EvaluationModel(model, make_optimizer(HPARAMS, model), HPARAMS, SEQUENCE, tf.distribute.get_strategy())
    copy.update()
    assert copy.model is model


@pytest.mark.slow  # compiles a training step
def test_averages_are_scored_and_the_weights_that_train_stay():
    model, optimizer = trained(0.5)
    before = [weight.numpy() for weight in model.trainable_variables]
    copy = EvaluationModel(model, optimizer, HPARAMS, SEQUENCE, tf.distribute.get_strategy())
    assert copy.model is not model
    copy.update()
    averages = [average.numpy() for average in optimizers.averages(optimizer)]
    for weight, average, old in zip(copy.model.trainable_variables, averages, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), average)
        assert not np.array_equal(average, old)
    for weight, old in zip(model.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), old)
