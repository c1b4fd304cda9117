"""From flags to the options of a search."""

import pytest

from trainer import cli, search_flags
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError
from ut_keras.hparams import HParams


def _options(command, *argv):
    return search_flags.search_options(cli.make_parser(command).parse_args(["--output_dir=x", *argv]))


@pytest.mark.parametrize("command", ["decode", "evaluate", "export"])
def test_every_command_that_decodes_has_the_same_search(command):
    assert _options(command) == DecodingOptions()
    beam = _options(command, "--beam_size=4", "--alpha=0.9", "--max_steps=3", "--cached=false", "--coupled_stop=best")
    assert beam == DecodingOptions(beam_size=4, alpha=0.9, max_steps=3, cached=False, coupled_stop="best")
    drawn = _options(command, "--temperature=0.7", "--top_k=5", "--top_p=0.9", "--seed=3")
    assert drawn == DecodingOptions(temperature=0.7, top_k=5, top_p=0.9, seed=3)


def test_what_was_given_is_known_even_where_it_is_the_default():
    arguments = cli.make_parser("decode").parse_args(["--n_best=1", "--extra_length=0", "--alpha=0"])
    assert search_flags.given(arguments) == ["alpha", "n_best", "extra_length"]


def test_flags_name_every_option():
    assert list(DecodingOptions().to_dict()) == search_flags.OPTIONS


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        (HParams(model="transformer"), "transformer has no recurrent steps"),
        (HParams(model="lstm_seq2seq"), "lstm_seq2seq has no recurrent steps"),
        (HParams(num_rec_steps=6), "a signal for each of 6 steps"),
        (HParams(recurrence_type="act", act_max_steps=5), "a signal for each of 5 steps"),
        (HParams(recurrence_type="dwa", step_timing_signal_type="sinusoid"), "a depth embedding for each of 6 steps"),
    ],
)
def test_depth_that_a_model_cannot_have_is_refused(hparams, message):
    with pytest.raises(UsageError, match=message):
        search_flags.refuse_depth(hparams, 7)
    search_flags.refuse_depth(hparams, None)


def test_depth_of_a_model_without_a_learned_signal_is_free():
    search_flags.refuse_depth(HParams(step_timing_signal_type="sinusoid"), 99)
    search_flags.refuse_depth(HParams(num_rec_steps=6), 3)
    search_flags.refuse_depth(HParams(recurrence_type="dwa", add_step_timing_signal=False, depth_embedding=False), 99)
    search_flags.refuse_depth(HParams(recurrence_type="dwa"), 6)
