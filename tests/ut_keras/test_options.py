"""The settings of a search: what is refused, what is stored, what the words say."""

import json
import subprocess
import sys

import pytest

from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam_size": 0}, "beam_size=0 is not an integer of at least 1"),
        ({"beam_size": 2.0}, "beam_size=2.0 is not an integer"),
        ({"beam_size": True}, "beam_size=True is not an integer"),
        ({"n_best": 5, "beam_size": 4}, "n_best=5 is more than beam_size=4: raise beam_size"),
        ({"alpha": -0.1}, "alpha=-0.1 is not a number of at least 0"),
        ({"alpha": float("nan")}, "alpha=nan is not a number"),
        ({"temperature": float("inf")}, "temperature=inf is not a number"),
        ({"temperature": 1, "beam_size": 2}, "temperature=1.0 samples and beam_size=2 searches: leave one out"),
        ({"top_k": 3}, "top_k=3 restricts sampling: set temperature above 0"),
        ({"top_p": 0.9}, "top_p=0.9 restricts sampling"),
        ({"top_p": 0, "temperature": 1}, "top_p=0.0 is no probability above 0"),
        ({"top_p": 1.5, "temperature": 1}, "top_p=1.5 is no probability above 0"),
        ({"seed": -1}, "seed=-1 is not an integer of at least 0"),
        ({"seed": 1 << 31}, "and below 2\\^31"),
        ({"max_steps": 0}, "max_steps=0 is not an integer of at least 1"),
        ({"coupled_stop": True}, "coupled_stop=True is not one of None, 'best', 'all'"),
        ({"coupled_stop": "all", "temperature": 1}, "coupled_stop='all' is a rule of greedy and beam search"),
        ({"cached": 1}, "cached=1 is not True or False"),
    ],
)
def test_values_that_make_no_sense_are_refused_with_the_way_out(values, message):
    with pytest.raises(UsageError, match=message):
        DecodingOptions(**values)


def test_whole_numbers_are_taken_for_numbers():
    assert DecodingOptions(beam_size=4, alpha=1).alpha == 1.0
    assert DecodingOptions(temperature=1) == DecodingOptions(temperature=1.0)


def test_what_an_answer_cannot_use_is_refused():
    for kind in ("sequence", "continuation"):
        DecodingOptions(beam_size=4, n_best=4).check(kind)
        DecodingOptions(temperature=1, n_best=4).check(kind)
        with pytest.raises(
            UsageError, match=r"n_best=2 needs a beam of at least that size \(beam_size=2\) or sampling"
        ):
            DecodingOptions(n_best=2).check(kind)
    DecodingOptions(n_best=2).check("class")
    with pytest.raises(UsageError, match="beam_size=4 searches for a sequence and the answer is a class"):
        DecodingOptions(beam_size=4).check("class")
    with pytest.raises(UsageError, match="temperature=1.0 searches for a sequence and the answer is a class"):
        DecodingOptions(temperature=1).check("class")


def test_options_survive_json():
    options = DecodingOptions(beam_size=4, alpha=0.0, n_best=2, max_steps=3, coupled_stop="best", cached=False)
    assert DecodingOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    assert DecodingOptions.from_dict({}) == DecodingOptions()


def test_unknown_names_are_refused():
    with pytest.raises(UsageError, match="no decoding option is called 'beam'; there are beam_size, alpha, "):
        DecodingOptions.from_dict({"beam": 4})


def test_neutral_values_are_said():
    """U90: nobody knew whether 0 or 1 turns a length penalty off."""
    words = " ".join(DecodingOptions.__doc__.split())
    assert "log-probability / ((5 + n) / 6)^alpha. 0 is neutral" in words
    assert "temperature: 0: no randomness; > 0: ids are drawn from softmax(logits / temperature); 1 is neutral" in words
    assert "top_k: sampling draws from this many most probable ids only; 0 is neutral" in words
    assert words.split(" top_p: ")[1].split(". ")[0].endswith("reaches this; 1 is neutral")


def test_reading_options_imports_no_tensorflow():
    program = "import sys, ut_keras.decoding.options; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
