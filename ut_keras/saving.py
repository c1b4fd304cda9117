"""Saved models: Keras finds only classes that have been imported, and our package imports lazily."""

import importlib

from ut_keras.backend import require_tensorflow

_MODULES = (
    "ut_keras.losses",
    "ut_keras.metrics",
    "ut_keras.schedules",
    "ut_keras.models.language_model",
    "ut_keras.models.lstm",
    "ut_keras.models.pointer",
    "ut_keras.models.transformer",
)


def register():
    """Imports every class that a saved model may hold (the modules named here import the others)."""
    for module in _MODULES:
        importlib.import_module(module)


def load_model(path, **options):
    """Returns the model that `model.save(path)` wrote, a ".keras" file, in any process.

    `keras.models.load_model` does the same where `ut_keras` was imported after `keras`.

    Args:
        path: the file.
        **options: those of `keras.models.load_model`: compile, safe_mode.
    """
    require_tensorflow()
    import keras

    register()
    return keras.models.load_model(path, **options)
