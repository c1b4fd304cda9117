"""The tiny problems, for every test of the trainer."""

import pathlib

import pytest

TINY = str(pathlib.Path(__file__).parent / "tiny_tasks")


@pytest.fixture(scope="session")
def tiny_dir():
    """The --usr_dir of the tiny problems, already imported."""
    from trainer.cli import import_user_code

    import_user_code(TINY)
    return TINY


@pytest.fixture
def run(tiny_dir, tmp_path):
    """The `RunDir` of a new run of tiny_copy, without checkpoints."""
    from tests.trainer.checkpointed import make_run

    return make_run(tmp_path / "run")


@pytest.fixture
def train(tiny_dir, tmp_path):
    """A function that trains into <temporary>/<name> and returns the exit code. The class problem compiles fastest."""
    import trainer

    def trained(name, *argv, problem="tiny_class"):
        flags = [f"--problem={problem}", f"--usr_dir={tiny_dir}", f"--output_dir={tmp_path / name}", "--log_every=1"]
        return trainer.main([*flags, *argv])

    return trained
