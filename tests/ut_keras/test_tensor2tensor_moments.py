"""The moments of tensor2tensor's optimizers: their names in a checkpoint, and what of them are ours."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files
from tests.trainer import t2t_files
from ut_keras import optimizers
from ut_keras.hparams import Features
from ut_keras.models.build import build_model
from ut_keras.tensor2tensor import load_weights
from ut_keras.tensor2tensor_checkpoint import T2tCheckpoint, join_shards
from ut_keras.tensor2tensor_hparams import hparams_from_t2t
from ut_keras.tensor2tensor_moments import restore_moments

ACT = golden_files.load("models/ut_act_accumulated")
FEATURES = Features("sequence", target_vocabulary_size=17, input_vocabulary_size=17)


def loaded(checkpoint, **changes):
    """Returns (hparams, variables by T2T's names, optimizer) of the golden model with a checkpoint's weights."""
    hparams = hparams_from_t2t(ACT.meta).override(changes)
    model = build_model(hparams, FEATURES)
    optimizer = optimizers.from_hparams(hparams)
    optimizer.build(model.trainable_variables)
    return hparams, load_weights(model, hparams, checkpoint.weights()), optimizer


class Slots(tf.compat.v1.train.Optimizer):
    """Makes slots as T2T's Adafactor does: all of them under the optimizer's name."""

    def __init__(self):
        super().__init__(use_locking=False, name="Adafactor")

    def _create_slots(self, variables):
        for variable in variables:
            shape = variable.shape.as_list()
            self._get_or_make_slot(variable, tf.zeros(shape[:-1]), "vr", self._name)
            self._get_or_make_slot(variable, tf.zeros(shape[:-2] + shape[-1:]), "vc", self._name)


def test_slots_have_the_names_that_tensorflow_1_gives_them(tmp_path):
    """T2T trains in the scope `training`; Adafactor's rows come before its columns."""
    name = "universal_transformer/body/x/kernel"
    for optimizer, expected in (
        (tf.compat.v1.train.AdamOptimizer(0.1), {"Adam": [[2, 3], [2, 3]]}),
        (tf.compat.v1.train.MomentumOptimizer(0.1, 0.9), {"Momentum": [[2, 3]]}),
        (Slots(), {"Adafactor": [[2], [3]]}),
    ):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            variable = tf.compat.v1.get_variable(name, [2, 3], use_resource=False)
            with tf.compat.v1.variable_scope("training"):
                if isinstance(optimizer, Slots):
                    optimizer._create_slots([variable])
                else:
                    optimizer.minimize(tf.reduce_sum(variable), tf.compat.v1.train.get_or_create_global_step())
            session.run(tf.compat.v1.global_variables_initializer())
            kind = next(iter(expected))
            prefix = tf.compat.v1.train.Saver().save(session, str(tmp_path / kind), write_meta_graph=False)
        checkpoint = T2tCheckpoint(pathlib.Path(prefix))
        assert checkpoint.kinds() == [kind]
        found = checkpoint.moments(kind)
        assert [list(part) for part in found] == [[name]] * len(found)
        assert [list(part[name].shape) for part in found] == expected[kind]
        assert list(checkpoint.weights()) == [name]


def adafactor_of(shape, second):
    """Returns T2T's means of the second moments of one variable [rows, columns], or [second] of a vector."""
    if len(shape) < 2:
        return [second]
    return [second.mean(axis=-1), second.mean(axis=-2)]


@pytest.mark.parametrize("shards", [pytest.param(1, marks=pytest.mark.slow), 16])
def test_moments_of_adafactor_are_the_means_of_tensor2tensors(tmp_path, shards):
    rng = np.random.default_rng(4)
    weights = t2t_files.in_shards(dict(ACT.under("w")), shards)
    second = {name: rng.uniform(1.0, 2.0, value.shape).astype(np.float32) for name, value in weights.items()}
    means = {name: adafactor_of(value.shape, second[name]) for name, value in weights.items()}
    moments = [{name: part[0] for name, part in means.items()}]
    moments.append({name: part[1] for name, part in means.items() if len(part) > 1})
    flat = {f"training/{name}/Adafactor": value for name, value in moments[0].items()}
    flat |= {f"training/{name}/Adafactor_1": value for name, value in moments[1].items()}
    t2t_files.save(tmp_path / "both", {**weights, **flat, "global_step": np.int64(3)})
    checkpoint = T2tCheckpoint(tmp_path / "both")
    hparams, variables, optimizer = loaded(checkpoint, optimizer="adafactor")
    said = restore_moments(optimizer, hparams, checkpoint, variables)
    assert said == f"Adafactor's moments of {len(variables)} variables"
    whole = join_shards(second)
    for name, variable in variables.items():
        index, value = optimizer._get_variable_index(variable), whole[name].reshape(variable.shape)
        if value.ndim < 2:
            np.testing.assert_allclose(optimizer._moments[index], value, rtol=1e-6)
        else:
            np.testing.assert_allclose(optimizer._rows[index], value.mean(axis=-1), rtol=1e-6)
            np.testing.assert_allclose(optimizer._columns[index], value.mean(axis=-2), rtol=1e-6)


def test_the_accumulator_of_momentum_is_a_velocity_at_the_rate_of_the_next_update(tmp_path):
    weights = dict(ACT.under("w"))
    slots = {f"training/{name}/Momentum": np.full_like(value, 3.0) for name, value in weights.items()}
    t2t_files.save(tmp_path / "both", {**weights, **slots})
    checkpoint = T2tCheckpoint(tmp_path / "both")
    recipe = {"learning_rate_schedule": "constant", "learning_rate_constant": 0.5}
    hparams, variables, optimizer = loaded(checkpoint, optimizer="momentum", **recipe)
    assert (
        restore_moments(optimizer, hparams, checkpoint, variables)
        == f"Momentum's moments of {len(variables)} variables"
    )
    assert all(np.all(slot.numpy() == -1.5) for slot in optimizer.momentums)
