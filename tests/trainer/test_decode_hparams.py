"""tensor2tensor's spelling of the decoding options: turned into flags, or refused with the reason."""

import pytest

from trainer import cli, decode_hparams
from ut_keras.errors import UsageError


def _merged(*argv):
    arguments = cli.make_parser("decode").parse_args(["--output_dir=x", *argv])
    decode_hparams.merge(arguments)
    return arguments


def test_names_become_flags():
    found = _merged("--decode_hparams=beam_size=4,alpha=0.9,extra_length=50,batch_size=8,num_samples=3")
    assert (found.beam_size, found.alpha, found.extra_length) == (4, 0.9, 50)
    assert (found.decode_batch_size, found.limit) == (8, 3)
    assert (found.with_scores, found.n_best) == (False, None)


def test_beams_and_scores_are_json():
    found = _merged("--decode_hparams=return_beams=True,beam_size=4", "--decode_hparams", "write_beam_scores=True")
    assert (found.n_best, found.beam_size, found.with_scores) == (4, 4, True)
    assert _merged("--beam_size=3", "--decode_hparams=return_beams=true").n_best == 3


def test_values_that_change_nothing_change_nothing():
    plain = vars(_merged())
    nothing = (
        "num_samples=-1,return_beams=False,max_input_size=-1,num_decodes=1,shards=1,force_decode_length=False,"
        "identity_output=0,min_length_ratio=0.0,log_results=True,decode_to_file=,block_size=0,delimiter='\n'"
    )
    found = vars(_merged(f"--decode_hparams={nothing}"))
    assert {name: value for name, value in found.items() if name != "decode_hparams"} == {
        name: value for name, value in plain.items() if name != "decode_hparams"
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beam_siz=4", "--decode_hparams has no 'beam_siz'; near names: beam_size"),
        ("beam_size=0", "beam_size='0' is not a positive integer"),
        ("alpha=much", "alpha='much' is not a number"),
        ("return_beams=maybe", "return_beams='maybe' is not true or false"),
        ("return_beams=true,beam_size=none", "'none' is not a positive integer"),
        ("max_input_size=100", "max_input_size=100: a line is never cut; --max_input_length"),
        ("num_decodes=5", "num_decodes=5: use --n_best"),
        ("shards=2", "shards=2: split the file"),
        ("force_decode_length=True", "--coupled_stop has T2T's rules"),
        ("identity_output=True", "identity_output=True: answers are text"),
        ("delimiter=;", "delimiter=;: a line ends at a line feed alone"),
        ("save_images=1", "there are no images"),
        ("beam_size", "'beam_size' is not name=value"),
    ],
)
def test_what_is_not_here_is_refused_with_the_reason(text, message):
    with pytest.raises(UsageError) as error:
        _merged(f"--decode_hparams={text}")
    assert message in str(error.value)


def test_two_flags_that_disagree_are_refused():
    assert _merged("--beam_size=4", "--decode_hparams=beam_size=4").beam_size == 4
    with pytest.raises(UsageError, match="--beam_size=2 and --decode_hparams=beam_size=4 say two things"):
        _merged("--beam_size=2", "--decode_hparams=beam_size=4")
