"""tensor2tensor's --decode_hparams: its names are turned into our flags, or refused with the reason.

Names and neutral values are those of T2T `utils/decoding.py`, `decode_hparams`. A value that changes nothing in T2T
(num_samples=-1) changes nothing here. Standard library only.
"""

import argparse

from trainer.flag_types import natural, number, positive, switch
from ut_keras.errors import UsageError
from ut_keras.hparams import parse_assignments
from ut_keras.registry import near_names

# T2T's name, or ours where T2T has none: (our flag, its type).
_FLAGS = {
    "beam_size": ("beam_size", positive),
    "alpha": ("alpha", number),
    "extra_length": ("extra_length", natural),
    "batch_size": ("decode_batch_size", positive),
    "num_samples": ("limit", positive),
    "write_beam_scores": ("with_scores", switch),
    "return_beams": ("n_best", switch),
    "n_best": ("n_best", positive),
    "temperature": ("temperature", number),
    "top_k": ("top_k", natural),
    "top_p": ("top_p", number),
    "seed": ("seed", natural),
    "max_steps": ("max_steps", positive),
    "max_output_length": ("max_output_length", positive),
    "max_input_length": ("max_input_length", positive),
}
_BLOCKS = "parallel decoding of blocks is not part of this search"
_PARTS = "split the file, and decode each part with a command of its own"
_PICTURES = "there are no images and no videos here"
_TABLES = "decoding writes no summaries: eval.json and TensorBoard have those of evaluate and training"
_COMPLIANCE = "there is no MLPerf log"
# What no flag does: (the value that asks for nothing, the reason).
_REFUSED = {
    "max_input_size": ("-1", "a line is never cut; --max_input_length=N answers longer ones with nothing, and says so"),
    "num_decodes": ("1", "use --n_best=N, with --temperature=1 for samples"),
    "delimiter": ("\\n", "a line ends at a line feed alone"),
    "force_decode_length": ("false", "an answer ends at its end token; --coupled_stop has T2T's rules"),
    "min_length_ratio": ("0", "--alpha is what favours longer answers"),
    "eos_penalty": ("0", "--alpha is what favours longer answers"),
    "identity_output": ("false", "answers are text in the problem's vocabulary"),
    "skip_eos_postprocess": ("false", "an answer ends at its end token"),
    "log_results": ("true", "answers go to --decode_to_file or to standard output"),
    "decode_to_file": ("", "use --decode_to_file=FILE"),
    "decode_reference": ("", "`evaluate` scores answers against the right ones"),
    "decode_in_memory": ("false", "`evaluate` scores answers against the right ones"),
    "decode_timeout_mins": ("240", "decoding takes a checkpoint that is there and waits for none"),
    "multiproblem_task_id": ("-1", "a run has one problem"),
    "export_extra_infer_outputs": ("", "an export has outputs, scores and ponder times"),
    "block_size": ("0", _BLOCKS),
    "guess_and_check_top_k": ("0", _BLOCKS),
    "guess_and_check_epsilon": ("-1", _BLOCKS),
    "insertion_parallel": ("false", _BLOCKS),
    "shards": ("1", _PARTS),
    "shard_id": ("0", _PARTS),
    "shards_start_offset": ("0", _PARTS),
    "shard_google_format": ("false", _PARTS),
    "summaries_log_dir": ("decode", _TABLES),
    "save_images": ("false", _PICTURES),
    "display_decoded_images": ("false", _PICTURES),
    "frames_per_second": ("10", _PICTURES),
    "border_percent": ("2", _PICTURES),
    "max_display_outputs": ("10", _PICTURES),
    "max_display_decodes": ("5", _PICTURES),
    "vgg_ckpt_path": ("", _PICTURES),
    "mlperf_decode_step": ("0", _COMPLIANCE),
    "mlperf_threshold": ("25", _COMPLIANCE),
    "mlperf_success": ("false", _COMPLIANCE),
}
_EVERYTHING = {"num_samples": "-1", "return_beams": "false", "write_beam_scores": "false"}


def merge(arguments):
    """Sets the flags of `decode` that its --decode_hparams name.

    Args:
        arguments: the parsed flags, None where one was not given; changed in place.

    Raises:
        UsageError: a name is unknown, a value is of the wrong kind or asks for what is not here, or a flag of its own
            says something else.
    """
    values = parse_assignments(",".join(arguments.decode_hparams or []), "--decode_hparams")
    for name, text in values.items():
        if name in _REFUSED:
            nothing, reason = _REFUSED[name]
            if not _same(text, nothing):
                raise UsageError(f"--decode_hparams: {name}={text}: {reason}")
        elif name not in _FLAGS:
            raise UsageError(f"--decode_hparams has no {name!r}{near_names(name, [*_FLAGS, *_REFUSED])}")
        elif not _same(text, _EVERYTHING.get(name)):
            _set(arguments, name, text, values)


def _set(arguments, name, text, values):
    flag, kind = _FLAGS[name]
    try:
        value = kind(text)
        if name == "return_beams":  # all of the beam
            value = positive(values.get("beam_size", str(arguments.beam_size or 1)))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--decode_hparams: {name}={error}") from None
    before = getattr(arguments, flag)
    if before not in (None, False, value):
        raise UsageError(f"--{flag}={before} and --decode_hparams={name}={text} say two things: leave one out")
    setattr(arguments, flag, value)


def _same(text, nothing):
    """Whether a value is the one that asks for nothing, in any spelling of it."""
    if nothing is None:
        return False
    text = text.replace("\n", "\\n").lower()
    try:
        return float(text) == float(nothing)
    except ValueError:
        spelled = {"1": "true", "t": "true", "yes": "true", "0": "false", "f": "false", "no": "false"}
        return nothing in (text, spelled.get(text))
