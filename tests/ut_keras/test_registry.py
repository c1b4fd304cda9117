"""Names, look-ups and their errors."""

import pytest

from ut_keras import registry
from ut_keras.errors import UsageError
from ut_keras.registry import Registry


def make():
    colours = Registry("colour")
    colours.register("task1", "fractions:Fraction", summary="one", numerator=1)
    colours.register("task10", "fractions:Fraction", numerator=10)
    colours.register("task2", "fractions:Fraction", numerator=2)
    return colours


def test_a_name_stands_for_an_attribute_with_bound_arguments():
    colours = make()
    assert colours.get("task10")() == 10
    assert colours.get("task1")(denominator=4) == 0.25
    colours.register("itself", len)
    assert colours.get("itself") is len


def test_the_module_is_imported_at_the_look_up_and_not_before():
    colours = make()
    colours.register("broken", "no_such_module:thing")
    assert "broken" in colours
    with pytest.raises(ModuleNotFoundError):
        colours.get("broken")


def test_names_are_in_natural_order_with_their_summaries():
    colours = make()
    assert colours.names() == ["task1", "task2", "task10"]
    assert colours.summary("task1") == "one"
    assert colours.summary("task2") == ""


def test_a_decorated_function_is_registered_with_its_first_line():
    colours = make()

    @colours.register("green")
    def green():
        """Of leaves.

        And more.
        """
        return 3

    assert colours.get("green")() == 3
    assert green() == 3
    assert colours.summary("green") == "Of leaves."


def test_a_wrong_name_is_an_error_of_one_line_with_near_names():
    with pytest.raises(UsageError) as error:
        make().get("taks1")
    assert str(error.value) == "no colour is called 'taks1'; near names: task1, task10, task2"
    with pytest.raises(UsageError, match="^no colour is called 'xyz'$"):
        make().get("xyz")


def test_a_name_is_registered_once():
    with pytest.raises(UsageError, match="colour 'task1' is registered twice"):
        make().register("task1", len)


def test_our_catalogues_are_loaded_by_the_first_look_up():
    assert "universal_transformer" in registry.models
    assert "adaptive_universal_transformer_tiny" in registry.hparams_sets
    with pytest.raises(UsageError, match="no model is called 'universal_transfomer'; near names: universal_"):
        registry.models.get("universal_transfomer")
    for catalogue in (registry.models, registry.hparams_sets):
        assert all(catalogue.summary(name) for name in catalogue.names())
