"""Run directories of tiny untrained models on real problems, for tests of what reads a run directory."""

import dataclasses
import json

import problems
from ut_keras.registry import hparams_sets

STORIES = (
    "Mary went to the kitchen. John took the milk. Where is Mary?",
    "John took the milk.\tWhere is John?",
    "",
    "Where is the milk ?",
)
STRINGS = ("314", "", "2 7 1 8 2 8", "0", "   ")
_WORDS = "john kitchen mary milk the took to went where is".split()


def algorithmic_run(path, **hparams):
    """Writes a run of `algorithmic_reverse_decimal40` to the directory `path`."""
    return _write(path, problems.get("algorithmic_reverse_decimal40"), "universal_transformer_algorithmic", hparams)


def babi_run(path, **hparams):
    """Writes a run of `babi_qa_sentence_task1_1k` with a small vocabulary; its data are not prepared."""
    words = {"kind": "words", "entries": sorted(_WORDS)}
    state = {"vocabularies": {"inputs": words, "targets": words}, "words_per_sentence": 5, "data_name": None}
    saved = {"name": "babi_qa_sentence_task1_1k", "args": {}, "fingerprint": None, "state": state}
    path.mkdir(parents=True)
    (path / "problem.json").write_text(json.dumps(saved))
    return _write(path, problems.load(path), "adaptive_universal_transformer_babi", hparams)


def _write(path, problem, hparams_set, changes):
    import keras

    from trainer.checkpoints import Checkpoints
    from trainer.run_dir import RunDir
    from ut_keras.models.build import build_model

    keras.utils.set_random_seed(7)
    small = {"hidden_size": 16, "filter_size": 32, "num_heads": 2, **changes}
    hparams = dataclasses.replace(hparams_sets.get(hparams_set)(), **small)
    run = RunDir.create(path, hparams, problem, {"seed": 7})
    optimizer = keras.optimizers.SGD()
    model = build_model(hparams, problem.features)
    optimizer.build(model.trainable_variables)
    Checkpoints(run, model, optimizer).save(40)
    return model
