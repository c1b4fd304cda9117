"""The Universal Transformer as Keras 3 layers and models on TensorFlow.

Nothing is imported until it is used, unless Keras is there already: `import ut_keras` costs milliseconds.
"""

import importlib
import sys

from ut_keras.backend import require_tensorflow

__version__ = "0.1.0"

_EXPORTS = {
    "HParams": "ut_keras.hparams",
    "UniversalTransformer": "ut_keras.models.universal_transformer",
    "UniversalTransformerEncoder": "ut_keras.models.encoder",
    "UniversalTransformerLM": "ut_keras.models.language_model",
    "Classifier": "ut_keras.models.classifier",
    "PointerClassifier": "ut_keras.models.pointer",
    "Transformer": "ut_keras.models.transformer",
    "TransformerEncoder": "ut_keras.models.transformer",
    "TransformerLM": "ut_keras.models.transformer",
    "LSTMSeq2Seq": "ut_keras.models.lstm",
    "UniversalRecurrence": "ut_keras.layers.recurrence",
    "AdaptiveComputationTime": "ut_keras.layers.halting",
    "Ponder": "ut_keras.layers.halting",
    "build_model": "ut_keras.models.build",
    "load_model": "ut_keras.saving",
    "TokenCrossEntropy": "ut_keras.losses",
    "LearningRateSchedule": "ut_keras.schedules",
    "TokenAccuracy": "ut_keras.metrics",
    "SequenceAccuracy": "ut_keras.metrics",
    "Perplexity": "ut_keras.metrics",
}
_SUBMODULES = ("losses", "metrics", "optimizers", "plots", "schedules", "serving", "tensor2tensor")

__all__ = ["__version__", *_EXPORTS, *_SUBMODULES]


def __getattr__(name):
    if name in _EXPORTS:
        require_tensorflow()
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    if name in _SUBMODULES:
        require_tensorflow()
        return importlib.import_module(f"ut_keras.{name}")
    raise AttributeError(f"module 'ut_keras' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)


# Who has imported Keras may load a saved model with it, and it has to know our classes by then.
if "keras" in sys.modules and sys.modules["keras"].config.backend() == "tensorflow":
    from ut_keras.saving import register

    register()
