"""The direction of imports, the sizes and names of files, and what importing costs."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("ut_keras", "problems", "trainer")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
EVERY_FILE = FILES + sorted((ROOT / "tests").rglob("*.py"))

# Which of our packages, or which of their modules, each package may import.
ALLOWED = {
    "ut_keras": ["ut_keras"],
    "problems": ["problems", "ut_keras.registry", "ut_keras.hparams", "ut_keras.errors"],
    "trainer": ["trainer", "problems", "ut_keras"],
}


def imported_modules(tree):
    """Yields the dotted name of everything that the tree imports, inside functions as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def forbidden(package, modules):
    """Returns the modules of ours that `package` must not import."""
    ours = [module for module in modules if module.split(".")[0] in (*PACKAGES, "tests")]
    return [
        module
        for module in ours
        if not any(module == allowed or module.startswith(allowed + ".") for allowed in ALLOWED[package])
    ]


def test_imports_go_in_one_direction():
    wrong = {}
    for path in FILES:
        modules = forbidden(path.relative_to(ROOT).parts[0], imported_modules(ast.parse(path.read_text())))
        if modules:
            wrong[str(path.relative_to(ROOT))] = modules
    assert wrong == {}


def test_no_layer_and_no_model_talks_to_other_devices():
    """Trip counts of the loop over depth differ between replicas: a collective inside of it would wait for ever."""
    words = ("distribute", "all_reduce", "replica", "collective")
    for path in (ROOT / "ut_keras").rglob("*.py"):
        names = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not [name for name in names if any(word in name for word in words)], path


@pytest.mark.parametrize(
    ("package", "source", "expected"),
    [
        ("ut_keras", "import problems", ["problems"]),
        ("ut_keras", "def f():\n    from trainer.loop import train", ["trainer.loop.train"]),
        ("problems", "from ut_keras import losses", ["ut_keras.losses"]),
        ("problems", "from ut_keras.registry import problems", []),
        ("problems", "from ut_keras import registry, errors", []),
        ("trainer", "import tests.golden_files", ["tests.golden_files"]),
    ],
)
def test_the_rule_finds_what_it_forbids(package, source, expected):
    assert forbidden(package, imported_modules(ast.parse(source))) == expected


def test_files_are_ascii_and_not_long():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="ascii").splitlines()) for path in EVERY_FILE}
    assert {path: length for path, length in lengths.items() if length > 400} == {}


def test_files_are_named_after_an_idea():
    vague = ("utils", "util", "helpers", "helper", "common", "misc")
    assert [path for path in EVERY_FILE if path.stem in vague] == []


def test_files_say_what_they_are_for():
    texts = {path: path.read_text().strip() for path in EVERY_FILE}
    assert [path for path, text in texts.items() if text and not ast.get_docstring(ast.parse(text))] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_directory_of_code_is_a_package(package):
    directories = {path.parent for path in FILES if path.relative_to(ROOT).parts[0] == package}
    assert [str(directory) for directory in directories if not (directory / "__init__.py").exists()] == []


def test_importing_the_packages_does_not_import_tensorflow():
    code = (
        "import sys, ut_keras, problems, trainer, ut_keras.registry, ut_keras.hparams\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'tensorflow_datasets', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_listing_names_does_not_import_tensorflow():
    code = (
        "import sys\n"
        "from ut_keras import registry\n"
        "import problems\n"
        "assert registry.models.names() and registry.hparams_sets.names() and registry.problems.names()\n"
        "registry.hparams_sets.get(registry.hparams_sets.names()[0])()\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_another_keras_backend_is_an_error_of_one_line():
    code = (
        "import os; os.environ['KERAS_BACKEND'] = 'jax'\n"
        "from ut_keras import errors\n"
        "try:\n"
        "    from ut_keras import UniversalTransformer\n"
        "except errors.UserError as error:\n"
        "    assert 'KERAS_BACKEND' in str(error) and '\\n' not in str(error), error\n"
        "else:\n"
        "    raise AssertionError('no error')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_every_exported_name_exists():
    import ut_keras

    for name in ut_keras.__all__:
        assert getattr(ut_keras, name) is not None


@pytest.mark.parametrize(
    "order", ["import keras, ut_keras", pytest.param("import ut_keras, keras", marks=pytest.mark.slow)]
)
def test_a_saved_model_is_loaded_in_a_new_process(tmp_path, order):
    import ut_keras

    encoder = ut_keras.UniversalTransformerEncoder(20, hidden_size=8, num_heads=2, filter_size=16, halting="frozen")
    model = ut_keras.Classifier(encoder, 5)
    model.compile("adam", ut_keras.TokenCrossEntropy(), metrics=[ut_keras.TokenAccuracy()])
    model.save(tmp_path / "model.keras")
    load = "keras.models" if order.startswith("import keras") else "ut_keras"
    code = f"{order}; print({load}.load_model({str(tmp_path / 'model.keras')!r}).count_params())"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=120, capture_output=True, text=True
    )
    assert int(done.stdout) == model.count_params()
