"""A small run with subwords on data that the package ships: SCAN's commands and actions as a user's own pairs.

What real lines do to an export shows best where the vocabulary takes any text.
"""

import pathlib

import problems
from problems import textio

_SCAN = pathlib.Path(problems.__file__).parent / "data" / "scan" / "simple_split" / "tasks_test_simple.txt.gz"
HARD_LINES = (
    "",
    "   ",
    "jump",
    "a",
    "Mot inconnu: na\u00efve \u00df \u4f60\u597d \U0001f600",
    "tab\tand  two blanks ",
    "jump twice and walk around right thrice after turn opposite left and look around left",
)


def untrained(folder, **hparams):
    """Returns a `Loaded` of `parallel_text` with random weights; data and vocabulary are made below `folder`."""
    import keras

    from trainer.loaded import Loaded
    from ut_keras.models.build import build_model
    from ut_keras.registry import hparams_sets

    problem = prepared(folder)
    small = {"hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_rec_steps": 2, **hparams}
    values = hparams_sets.get(problem.default_hparams_set)().override({n: str(v) for n, v in small.items()})
    keras.utils.set_random_seed(7)
    return Loaded(build_model(values, problem.features), problem, values, step=0, output_dir=folder / "run")


def pairs(count):
    """Returns `count` pairs (command, actions) of SCAN, spread over its test file."""
    lines = list(textio.read_lines(_SCAN))
    chosen = lines[:: len(lines) // count][:count]
    return [tuple(part.strip() for part in line.removeprefix("IN: ").split(" OUT: ")) for line in chosen]


def write_pairs(folder, train, dev=8):
    """Writes train.source, train.target, dev.source, dev.target for the problem `parallel_text`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = pairs(train + dev)
    for name, chosen in (("train", rows[:train]), ("dev", rows[train:])):
        for column, ending in enumerate(("source", "target")):
            textio.write_lines(folder / f"{name}.{ending}", [row[column] for row in chosen])
    return folder


def prepared(folder, vocabulary_size=300):
    """Returns `parallel_text` on these pairs, prepared below `folder`."""
    problem = problems.get("parallel_text", vocabulary_size=vocabulary_size)
    return problem.prepare(folder / "data", write_pairs(folder / "files", 64))
