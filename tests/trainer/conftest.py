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
