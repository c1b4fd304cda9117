"""Untrained tiny models of every kind with their problems, as `Loaded`, without a run directory."""

import dataclasses

import keras
import numpy as np

import problems
from problems.vocabulary import OpenWordVocabulary, WordVocabulary
from tests.tiny_models import spread_halting
from trainer.loaded import Loaded
from ut_keras.models.build import build_model
from ut_keras.registry import hparams_sets

WORDS = "john kitchen mary milk the took to went where is".split()


def reverse(**changes):
    """A model of strings of digits, encoder and decoder."""
    return make(problems.get("algorithmic_reverse_decimal40"), "universal_transformer_algorithmic", changes)


def stories(**changes):
    """A classifier of sentences."""
    problem = problems.get("babi_qa_sentence_task1_1k")
    problem.vocabularies = dict.fromkeys(("inputs", "targets"), WordVocabulary(sorted(WORDS)))
    problem.words_per_sentence = 5
    return make(problem, "adaptive_universal_transformer_babi", changes)


def pointing(**changes):
    """A classifier that points at a word of its input."""
    problem = problems.get("lambada_rc")
    problem.vocabularies = dict.fromkeys(("inputs", "targets"), OpenWordVocabulary(WORDS))
    return make(problem, "universal_transformer_lambada_rc", changes)


def language(**changes):
    """A language model of words."""
    problem = problems.get("lambada_lm")
    problem.vocabularies = {"inputs": None, "targets": OpenWordVocabulary(WORDS)}
    return make(problem, "universal_transformer_lambada_lm", changes)


def make(problem, hparams_set, changes):
    """Returns the `Loaded` of a model of width 16 for `problem`; its halting units, if any, let positions differ."""
    keras.utils.set_random_seed(3)
    small = {"hidden_size": 16, "filter_size": 32, "num_heads": 2, **changes}
    hparams = dataclasses.replace(hparams_sets.get(hparams_set)(), **small)
    model = build_model(hparams, problem.features)
    spread_halting(model, np.random.default_rng(3))
    return Loaded(model, problem, hparams, 40, "runs/tiny", "checkpoints/ckpt-40")
