"""What is settled before the first training step."""

import dataclasses
import types

import numpy as np
import pytest

from trainer import start
from trainer.train_config import TrainConfig
from ut_keras.errors import UsageError
from ut_keras.hparams import HParams


def config(**changes):
    hparams = HParams().override({"batch_size": 4, "use_fixed_batch_size": True, **changes})
    return TrainConfig("p", {}, "set", hparams, output_dir=None, seed=3)


def split(count=21):
    return types.SimpleNamespace(lengths=np.full([count, 2], 5))


def devices(replicas=1, workers=1):
    return types.SimpleNamespace(replicas=replicas, workers=workers)


def test_a_batch_size_is_of_all_replicas_or_of_each():
    everything = start.batch_plan(config(batch_size=8), devices(), split())
    shared = start.batch_plan(config(batch_size=8), devices(replicas=2), split())
    each = start.batch_plan(config(batch_size=4, batch_size_per_replica=True), devices(replicas=2), split())
    for step in range(9):
        np.testing.assert_array_equal(shared.batch(step), everything.batch(step))
        np.testing.assert_array_equal(each.batch(step), everything.batch(step))


@pytest.mark.parametrize(
    ("changes", "batch"),
    [
        ({}, 4),
        ({"optimizer_multistep_accumulate_steps": 8}, 32),
        ({"optimizer_multistep_accumulate_steps": 8, "batch_size_per_replica": True}, 96),
    ],
)
def test_an_update_over_several_batches_is_over_one_batch_of_their_size(changes, batch):
    assert start.global_batch_size(config(**changes), devices(replicas=3)) == batch


def test_several_steps_in_one_call_are_refused_where_collectives_of_cpus_would_be_in_a_loop():
    several = dataclasses.replace(config(), steps_per_execution=4)
    start.refuse_unfit(several, devices(replicas=2))
    start.refuse_unfit(config(), devices(replicas=2, workers=2))
    with pytest.raises(UsageError, match="--steps_per_execution with --strategy=multi_worker"):
        start.refuse_unfit(several, devices(replicas=2, workers=2))
