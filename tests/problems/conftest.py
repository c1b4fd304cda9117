"""Problems that are prepared once for all tests of this folder, and places of data that not every machine has."""

import pathlib

import pytest

import problems

SMALL = {"train_size": 300, "dev_size": 40, "test_size": 30, "long_size": 20}


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """A data directory that the tests of a process share; nothing in it is changed by them."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def small(data_dir):
    """Function (name) -> the prepared algorithmic problem with a few hundred examples."""
    return lambda name: problems.get(name, **SMALL).prepare(data_dir)


@pytest.fixture(scope="session")
def task1(data_dir):
    return problems.get("babi_qa_sentence_task1_1k").prepare(data_dir)


def shared_folder(name, what):
    """Returns a folder of data that may not be shipped; skips the test where they are not, saying what is missing."""
    folder = pathlib.Path(__file__).parents[3] / "shared" / "data" / name
    if not folder.is_dir():
        pytest.skip(f"{what} not on this machine")
    return folder


@pytest.fixture(scope="session")
def shared_babi():
    """The folder with bAbI at 10k, which is too large to ship."""
    return shared_folder("babi", "the bAbI files at 10k are")


@pytest.fixture(scope="session")
def shared_agreement():
    """The folder with the sentences of Linzen et al. that Gulordava et al. evaluate on, which may not be shipped."""
    return shared_folder("agreement", "linzen_subset.tsv.gz is")


@pytest.fixture(scope="session")
def shared_lambada():
    """The folder with LAMBADA's development set, some of its control set and its list of words, none of it shipped."""
    return shared_folder("lambada", "lambada_development_plain_text.txt is")
