"""Every public class and function says what it is; the examples in docstrings run."""

import doctest
import importlib
import inspect
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("ut_keras", "problems", "trainer")
    for path in (ROOT / package).rglob("*.py")
    if path.name != "__main__.py"
)
# Layers, models, losses and metrics: classes that a reader meets first have an example.
WITH_EXAMPLES = ("ut_keras.layers", "ut_keras.models", "ut_keras.losses", "ut_keras.metrics", "ut_keras.schedules")


def public(module):
    """Yields the public classes and functions that are defined in the module."""
    for name, value in vars(module).items():
        is_ours = getattr(value, "__module__", None) == module.__name__
        if is_ours and not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value)):
            yield value


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_are_there_and_their_examples_run(name):
    module = importlib.import_module(name)
    assert module.__doc__
    missing = [value.__qualname__ for value in public(module) if not inspect.getdoc(value)]
    assert missing == []
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith(WITH_EXAMPLES)])
def test_layers_and_models_have_an_example(name):
    import keras

    kinds = (keras.layers.Layer, keras.losses.Loss, keras.metrics.Metric)
    classes = [value for value in public(importlib.import_module(name)) if inspect.isclass(value)]
    concrete = [value for value in classes if issubclass(value, kinds) and _is_registered(value)]
    without = [value.__name__ for value in concrete if ">>>" not in (value.__doc__ or "")]
    assert without == []


def _is_registered(value):
    """Whether Keras can load it by name: what is not is a base of others."""
    import keras

    return ">" in keras.saving.get_registered_name(value)
