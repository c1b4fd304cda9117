"""Tiny models with every option, and batches for them.

Legend: B batch, L source length, M target length, S sentences, W words.
"""

import keras
import numpy as np

from ut_keras.models.classifier import Classifier
from ut_keras.models.encoder import UniversalTransformerEncoder
from ut_keras.models.language_model import UniversalTransformerLM
from ut_keras.models.pointer import PointerClassifier
from ut_keras.models.transformer import Transformer, TransformerEncoder, TransformerLM
from ut_keras.models.universal_transformer import UniversalTransformer

SIZES = {"hidden_size": 8, "num_heads": 2, "filter_size": 16, "max_steps": 4}
VOCABULARY = 9

# Every halting, transition, norm and signal option at least once, most of them in company.
OPTIONS = {
    "fixed steps": {},
    "frozen": {"halting": "frozen"},
    "frozen pre sepconv": {"halting": "frozen", "norm": "pre", "transition": "sepconv", "num_blocks": 2},
    "basic": {"halting": "basic", "norm": "pre", "signal": {"layout": "t2t", "step": "learned"}},
    "accumulated relative hard": {
        "halting": "accumulated",
        "max_relative_position": 2,
        "hard_attention_k": 3,
        "zero_padding": True,
    },
    "accumulated sepconv concat SRU": {
        "halting": "accumulated",
        "transition": "sepconv",
        "sru": True,
        "signal": {"combine": "concat", "step": "learned"},
    },
    "global": {"halting": "global"},
    "start index step": {"signal": {"layout": "t2t", "shift_by_step": True}, "norm": "pre"},
    "random": {"halting": "random", "norm": "pre", "signal": {"position": False}},
    "remat, no step signal": {"remat": True, "signal": {"step": "none"}, "transition": "sepconv", "norm": "pre"},
}

# Every recurrence type, with one option of those that change what it reads.
TYPES = {
    "highway": {"recurrence": {"type": "highway", "gates_inputs": "ist"}, "zero_padding": True},
    "skip": {"recurrence": "skip", "num_blocks": 2},
    "dwa": {"recurrence": "dwa"},
    "rnn": {"recurrence": "rnn"},
    "gru": {"recurrence": "gru", "num_blocks": 2, "zero_padding": True},
    "lstm": {"recurrence": {"type": "lstm", "use_memory_as_final_state": True}, "halting": "frozen"},
}
TYPES = {name: {"norm": "pre", **options} for name, options in TYPES.items()}


def make(kind, seed=0, **options):
    """A model whose halting units, if any, let positions halt at different steps.

    Args:
        kind: "seq2seq", "encoder", "language model", "classifier" (of [B, S, 3] sentences), "pointer", or one of these
            with "plain " before it for the Transformer.
    """
    keras.utils.set_random_seed(seed)
    plain = kind.startswith("plain ")
    options = {**SIZES, **options}
    name = kind.removeprefix("plain ")
    if name == "seq2seq":
        model = (Transformer if plain else UniversalTransformer)(VOCABULARY, **options)
    elif name == "language model":
        model = (TransformerLM if plain else UniversalTransformerLM)(VOCABULARY, max_length=20, **options)
    else:
        encoder_class = TransformerEncoder if plain else UniversalTransformerEncoder
        if name == "classifier":
            model = Classifier(encoder_class(VOCABULARY, words_per_sentence=3, **options), num_classes=5)
        elif name == "pointer":
            model = PointerClassifier(encoder_class(VOCABULARY, **options), num_classes=VOCABULARY)
        else:
            model = encoder_class(VOCABULARY, head="tokens", **options)
    spread_halting(model, np.random.default_rng(seed))
    return model


def spread_halting(model, rng):
    """Lets every halting unit look at the fastest sinusoid, so that positions halt at different steps."""
    for layer in model._flatten_layers():
        if type(layer).__name__ == "AdaptiveComputationTime" and layer.weights:
            kernel = 0.5 * rng.normal(size=layer.weights[0].shape)
            kernel[0] += 5.0
            layer.set_weights([kernel, np.array([0.3])])


def rows(kind):
    """Four examples of different lengths as a padded batch, the last of them empty; the first is not the longest."""
    inputs = np.array([[3, 4, 2, 1, 0, 0], [2, 5, 6, 7, 3, 1], [8, 1, 0, 0, 0, 0], [0] * 6], "int32")
    targets = np.array([[5, 6, 1, 0, 0], [7, 2, 3, 4, 1], [4, 1, 0, 0, 0], [0] * 5], "int32")
    if kind.endswith("language model"):
        return {"targets": targets}
    if kind.endswith(("encoder", "pointer")):
        return {"inputs": inputs}
    if kind.endswith("classifier"):
        sentences = np.zeros([4, 5, 3], "int32")
        sentences[0, :3] = [[3, 4, 0], [5, 6, 7], [2, 1, 0]]
        sentences[1] = [[4, 1, 0], [2, 3, 1], [5, 0, 0], [6, 6, 1], [7, 1, 0]]
        sentences[2, :1] = [[8, 2, 1]]
        return {"inputs": sentences}
    return {"inputs": inputs, "targets": targets}


def alone(batch, extra=0):
    """The first example of a batch by itself, without padding or with `extra` positions of it."""
    result = {}
    for name, value in batch.items():
        real = value[0] != 0 if value.ndim == 2 else np.any(value[0] != 0, axis=-1)
        kept = value[:1, : real.sum()]
        result[name] = np.pad(kept, [(0, 0), (0, extra)] + [(0, 0)] * (value.ndim - 2))
    return result
