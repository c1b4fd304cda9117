"""What C++ writes to standard error is dropped, unless it says why something failed."""

import os

import pytest

from trainer.quiet import silence


def write():
    os.write(2, b"of no use\n")


def test_what_is_written_past_python_is_dropped(capfd):
    with silence():
        write()
    os.write(2, b"of use\n")
    assert capfd.readouterr().err == "of use\n"


def test_all_is_shown_when_it_fails(capfd):
    with pytest.raises(ValueError), silence():
        write()
        raise ValueError
    assert capfd.readouterr().err == "of no use\n"


def test_all_is_shown_where_it_is_asked_for(monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with silence():
        write()
    assert capfd.readouterr().err == "of no use\n"
