"""A run of a tiny model, and what tests of its checkpoints do to it."""

import pathlib

import tensorflow as tf

import problems
from trainer.checkpoints import Checkpoints
from trainer.run_dir import RunDir
from trainer.step import make_optimizer
from ut_keras.hparams import Features
from ut_keras.models.build import build_model
from ut_keras.registry import hparams_sets

FEATURES = Features("sequence", target_vocabulary_size=5, input_vocabulary_size=5)


def make_run(path):
    """Returns a new run of tiny_copy; the test has the fixture `tiny_dir`."""
    settings = {"problem": "tiny_copy", "usr_dir": None}
    return RunDir.create(path, hparams_sets.get("tiny")(), problems.get("tiny_copy").prepare(), settings)


def build(run, changes="", keep=2, **options):
    """Returns a new (model, optimizer, Checkpoints); `options` are those of `make_optimizer`."""
    hparams = run.hparams.override(changes)
    model = build_model(hparams, FEATURES)
    optimizer = make_optimizer(hparams, model, **options)
    return model, optimizer, Checkpoints(run, model, optimizer, keep=keep)


def fill(variables, value):
    """Makes every number of some variables `value`."""
    for variable in variables:
        variable.assign(tf.cast(tf.fill(variable.shape, value), variable.dtype))


def weights(model):
    """Returns the weights of a model as arrays."""
    return [variable.numpy() for variable in model.trainable_variables]


def all_are(variables, value):
    """Returns whether every number of some variables is `value`."""
    return all((variable.numpy() == value).all() for variable in variables)


def damage(path, keep=0.5):
    """Cuts off the end of a file."""
    content = pathlib.Path(path).read_bytes()
    pathlib.Path(path).write_bytes(content[: int(len(content) * keep)])


def steps(directory):
    """Returns the steps of the checkpoints whose files are all in a directory."""
    return sorted(
        int(index.stem.removeprefix("ckpt-"))
        for index in pathlib.Path(directory).glob("ckpt-*.index")
        if index.with_name(f"{index.stem}.data-00000-of-00001").exists()
    )
