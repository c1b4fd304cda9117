"""Which weights of another model a warm start takes, and what it says of the others."""

import types

import numpy as np
import pytest
import tensorflow as tf

from problems.vocabulary import SymbolVocabulary
from tests.trainer.saved_runs import algorithmic_run
from trainer.named_tensors import model_variables
from trainer.warm_start import warm_start
from ut_keras.errors import UserError
from ut_keras.hparams import Features, HParams
from ut_keras.models.build import build_model

SEQUENCE, CLASS, LANGUAGE = Features("sequence", 9, 9), Features("class", 9, 9), Features("sequence", 9)


def build(model, features, **changes):
    small = {"hidden_size": 4, "filter_size": 8, "num_heads": 2, **changes}
    return build_model(HParams(model=model).override(small), features)


def fill(model, value):
    for variable in model.trainable_variables:
        variable.assign(tf.fill(variable.shape, value))


def filled(model, value):
    """Returns how many weights hold nothing but `value`."""
    return sum(bool(np.all(variable.numpy() == value)) for variable in model.trainable_variables)


@pytest.fixture
def save(tmp_path):
    """A function that fills a model with 4 and returns the path of its checkpoint."""

    def saved(model):
        fill(model, 4.0)
        return tf.train.Checkpoint(model=model_variables(model)).write(str(tmp_path / "source"))

    return saved


def test_all_weights_of_a_run_or_of_its_checkpoint(tmp_path, capsys):
    path = tmp_path / "run"
    fill_values = [variable.numpy() for variable in algorithmic_run(path).trainable_variables]
    import trainer

    fresh = trainer.load(path).model
    for source in (path, path / "checkpoints" / "ckpt-40"):
        fill(fresh, 7.0)
        warm_start(fresh, str(source))
        for variable, value in zip(fresh.trainable_variables, fill_values, strict=True):
            np.testing.assert_array_equal(variable.numpy(), value)
        err = capsys.readouterr().err
        count = len(fill_values)
        assert f"took {count} of {count} weights from {path}" in err
        assert "missing" not in err and "unused" not in err


def test_embedding_of_another_vocabulary_does_not_fit_and_is_said(save, capsys):
    path = save(build("universal_transformer", SEQUENCE))
    model = build("universal_transformer", Features("sequence", 7, 7))
    warm_start(model, path)
    count = len(model.trainable_variables)
    assert filled(model, 4.0) == count - 1
    assert capsys.readouterr().err.splitlines() == [
        f"took {count - 1} of {count} weights from {path}",
        "  1 of another shape: embedding/table [9, 4] there, [7, 4] here",
    ]


@pytest.mark.parametrize(
    ("name", "features", "side"),
    [("universal_transformer_lm", LANGUAGE, "decoder"), ("universal_transformer_encoder", CLASS, "encoder")],
)
def test_a_side_alone_gives_its_weights_to_the_same_side(save, capsys, name, features, side):
    path = save(build(name, features))
    model = build("universal_transformer", SEQUENCE)
    fill(model, 0.0)
    warm_start(model, path)
    other = {"decoder": "encoder", "encoder": "decoder"}[side]
    assert filled(getattr(model, other), 4.0) == 0
    taken = [variable for variable in getattr(model, side).trainable_variables if np.all(variable.numpy() == 4.0)]
    assert len(taken) == filled(model, 4.0) - 1 > 10  # and the embedding
    err = capsys.readouterr().err
    assert f"missing there: {other}/body/timing/layer_embedding" in err
    assert ("unused: classes/kernel; classes/bias" in err) == (side == "encoder")


def test_a_deeper_stack_takes_the_layers_that_there_are_side_by_side(save, capsys):
    path = save(build("transformer", SEQUENCE, num_hidden_layers=1))
    model = build("transformer", SEQUENCE, num_hidden_layers=2)
    fill(model, 0.0)
    warm_start(model, path)
    for side in (model.encoder, model.decoder):
        first, second = (filled(layer, 4.0) for layer in side.body.blocks)
        assert first > 0 and second == 0
    assert "encoder/body/layer/self_attention/q (2)" in capsys.readouterr().err


def test_an_encoder_takes_what_a_language_model_has_learned(save):
    model = build("universal_transformer_encoder", CLASS)
    warm_start(model, save(build("universal_transformer_lm", LANGUAGE)))
    assert filled(model, 4.0) == len(model.trainable_variables) - 2  # all but the classes


def test_nothing_that_fits_is_refused_and_changes_nothing(save):
    path = save(build("universal_transformer", SEQUENCE))
    model = build("universal_transformer", SEQUENCE, hidden_size=6, filter_size=10)
    fill(model, 0.0)
    with pytest.raises(UserError, match="--warm_start_from=.*none of its .* weights fits this model by name and shape"):
        warm_start(model, path)
    assert filled(model, 0.0) == len(model.trainable_variables)


@pytest.mark.parametrize("name", ["nowhere", "best", "last"])
def test_a_place_without_checkpoint_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"there is no checkpoint {name}"):
        warm_start(build("universal_transformer", SEQUENCE), name)


@pytest.mark.parametrize(("symbols", "warns"), [("0123456789", False), ("abcdefghij", True), ("abc", False)])
def test_a_table_of_other_entries_is_said_although_it_fits(symbols, warns, tmp_path, capsys):
    model = algorithmic_run(tmp_path / "run")
    problem = types.SimpleNamespace(vocabularies={"inputs": None, "targets": SymbolVocabulary(symbols)})
    warm_start(model, str(tmp_path / "run"), problem)
    warning = "warning: the vocabulary of the targets is another one than there, of the same size"
    assert (warning in capsys.readouterr().err) == warns
