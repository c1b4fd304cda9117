"""Compares an exported model, batch 1 and batch 32, with the `decode` command's answers (batch 32) on real lines.

Trains two tiny models for a moment: pairs of texts with subwords (Multi30k where its files are given, else SCAN's
commands, which are shipped) and bAbI (shipped). Each is exported with greedy search, the first also with a beam of 4;
the lines are the development set's or the test set's. An export is loaded as a user without our packages loads it.
Prints one line of JSON.

    python tests/benchmarks/export_equals_decode.py --multi30k_dir=DIR
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

BATCHES = (1, 32)
_SMALL = "hidden_size=64,filter_size=128,num_heads=4,learning_rate_warmup_steps=100"


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi30k_dir", metavar="DIR", help="train.en.gz, train.de.gz, val.en.gz, val.de.gz")
    parser.add_argument("--lines", type=int, default=500, metavar="N", help="of each problem (default: 500)")
    parser.add_argument("--train_steps", type=int, default=400, metavar="N", help="of each model (default: 400)")
    parser.add_argument("--max_output_length", type=int, metavar="N", help="cap of an answer (default: the problem's)")
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory(prefix="export_equals_decode_") as folder:
        print(json.dumps(measure(pathlib.Path(folder), arguments)))


def measure(folder, arguments):
    """Returns {problem: {search: {batch: counts}}}; everything is written below `folder`."""
    result = {"lines": arguments.lines, "train_steps": arguments.train_steps}
    cap = {"max_output_length": arguments.max_output_length} if arguments.max_output_length else {}
    for flags, searches in (
        (_pairs_flags(folder, arguments.multi30k_dir), {"greedy": cap, "beam4": {"beam_size": 4, **cap}}),
        (["--problem=babi_qa_sentence_task1_1k", f"--hparams={_SMALL},act_max_steps=4"], {"greedy": {}}),
    ):
        loaded = _train(folder, flags, arguments.train_steps)
        lines = _lines(loaded.problem, arguments.lines)
        result[loaded.problem.name] = {
            name: compare(loaded, lines, folder / "exports" / loaded.problem.name / name, options)
            for name, options in searches.items()
        }
    return result


def compare(loaded, lines, export_dir, options, batches=BATCHES):
    """Returns {"batch_1": counts, ...} of the export's answers, in batches of each size, beside those of `decode`.

    Args:
        loaded: `trainer.load(...)`.
        lines: list of str.
        export_dir: where to export to.
        options: what `Loaded.decode` takes: fields of `DecodingOptions` and of `OutputLimit`.
        batches: batch sizes of the export; `decode` has its default.
    """
    import tensorflow as tf

    from tests.benchmarks.same_answers import SameAnswers
    from trainer.export import export
    from trainer.output_limit import OutputLimit
    from ut_keras.decoding.options import DecodingOptions

    limits = {name: options[name] for name in ("extra_length", "max_output_length") if name in options}
    search = {name: value for name, value in options.items() if name not in limits}
    directory = export(loaded, export_dir, DecodingOptions(**search), OutputLimit(loaded.problem, **limits))
    serve = tf.saved_model.load(str(directory)).signatures["serving_default"]
    expected = [(answer.text, answer.score) for answer in loaded.decode(lines, **options)]
    texts = [text for text, _ in expected]
    result = {"not_empty": sum(map(bool, texts)), "distinct": len(set(texts))}
    for size in batches:
        same = SameAnswers()
        for start in range(0, len(lines), size):
            chosen = lines[start : start + size]
            found = serve(inputs=tf.constant(chosen))
            served = [text.decode() for text in found["outputs"].numpy()]
            for answer in zip(chosen, zip(served, found["scores"].numpy().tolist()), expected[start : start + size]):
                same.add(*answer)
        for line, one, other in same.examples:
            print(f"{line!r}: export {one}, decode {other}", file=sys.stderr)
        result[f"batch_{size}"] = same.summary()
    return result


def _pairs_flags(folder, multi30k_dir):
    from tests.trainer import served_text

    hparams = f"--hparams={_SMALL},recurrence_type=act,act_max_steps=3"
    if multi30k_dir:
        return ["--problem=translate_multi30k_ende", f"--manual_dir={multi30k_dir}", hparams]
    files = served_text.write_pairs(folder / "files", 3000, 700)
    return ["--problem=parallel_text", f"--manual_dir={files}", "--problem_args=vocabulary_size=400", hparams]


def _train(folder, flags, steps):
    """Returns the `Loaded` of a run that was trained for a moment, its problem prepared."""
    import contextlib

    import trainer

    name = flags[0].partition("=")[2]
    where = [f"--output_dir={folder / name}", f"--data_dir={folder / 'data'}"]
    with contextlib.redirect_stdout(sys.stderr):
        code = trainer.main([*flags, *where, f"--train_steps={steps}", "--schedule=train", "--log_every=50"])
    if code:
        sys.exit(code)
    loaded = trainer.load(folder / name, "last")
    manual = next((flag.partition("=")[2] for flag in flags if flag.startswith("--manual_dir=")), None)
    loaded.problem.prepare(folder / "data", manual)
    return loaded


def _lines(problem, count):
    """Returns `count` lines of the test split, or of dev where there is none."""
    split = problem.split(problem.final_split if problem.final_split in problem.available else "dev")
    rows = range(0, len(split), max(len(split) // count, 1))
    lines = [problem.decode_input(split.example(row)["inputs"]) for row in rows][:count]
    assert len(lines) == count, f"there are {len(lines)} lines"
    return lines


if __name__ == "__main__":
    main()
