"""README's section "From tensor2tensor" and the code name the same things: whatever it quotes exists, or is gone."""

import argparse
import dataclasses
import fnmatch
import itertools
import pathlib
import re
import shlex

import pytest

from problems.problem import Problem
from tests import golden_files
from trainer import cli, decode_hparams, eval_metrics
from trainer.flags import COMMANDS
from ut_keras.errors import UsageError, UserError
from ut_keras.hparam_fields import parse
from ut_keras.hparams import HParams
from ut_keras.models.search_spaces import SEARCH_SPACES
from ut_keras.registry import hparams_sets, models, problems
from ut_keras.tensor2tensor_hparams import from_tensor2tensor

ROOT = pathlib.Path(__file__).parents[2]
SECTION = re.search(r"^## From tensor2tensor\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)[1]
FIELDS = {field.name: field for field in dataclasses.fields(HParams)}
ACTIONS = [action for command in COMMANDS for action in cli.make_parser(command)._actions]
FLAGS = {flag for action in ACTIONS for flag in action.option_strings}
# What is quoted outside of the columns of T2T's names, and found in no list of names.
OTHERS = """
    bafdc1b global_step noam legacy sacrebleu -lc train.tsv <pad> <EOS> hparams.json eval.json vocab.*.subwords
    daisy_chain_variables --iterations_per_loop Adafactor true_adam tf.distribute CUDA_VISIBLE_DEVICES TPU_NAME
    model_from_t2t free_running last_word preference
""".split()


def tables():
    """Returns the tables of the section: lists of rows, which are lists of cells."""
    blocks = re.findall(r"(?:^\|.*\n)+", SECTION, re.M)
    return [[[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()] for block in blocks]


def quoted(text):
    """Returns what stands between backquotes, code blocks left out."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def first_is_theirs(table):
    """Whether the first column of a table holds names of T2T's, which need not be ours."""
    head = table[0][0]
    return head.endswith("hparam") or head.startswith("T2T") and "all here" not in head


def our_text():
    """Returns the prose, and the columns that are not T2T's."""
    cells = [cell for table in tables() for row in table[2:] for cell in row[first_is_theirs(table) :]]
    return "\n".join([re.sub(r"^\|.*\n", "", SECTION, flags=re.M), *cells])


def expanded(pattern):
    """Returns the names that a pattern with {a,b} stands for."""
    parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def row_of(first):
    """Returns the one row that begins with this cell."""
    (row,) = [row for table in tables() for row in table if row[0] == first]
    return row


def test_all_rows_of_a_table_have_its_columns():
    assert len(tables()) == 9
    for table in tables():
        assert {len(row) for row in table} == {len(table[0])}, table[0]
        assert set("".join(table[1])) == {"-"}


def test_what_is_said_to_be_the_same_is_here_and_what_is_said_to_be_gone_is_not():
    found = {}
    for table in tables():
        if table[0][0] in ("T2T's flag", "hparam"):
            for theirs, ours, _ in table[2:]:
                found.setdefault(re.split(r"\W", ours)[0], []).extend(quoted(theirs))
    assert len(found["same"]) > 80 and len(found["none"]) > 70
    kept = FLAGS | set(FIELDS)
    assert [name for name in found["same"] + found["new"] if name not in kept] == []
    assert [name for name in found["none"] if name in kept] == []


def test_every_hparam_is_in_the_table_of_hparams():
    (table,) = [table for table in tables() if table[0][0] == "hparam"]
    assert [name for name in FIELDS if name not in quoted("".join(row[0] for row in table))] == []


def test_every_flag_is_one_of_ours():
    known, scripts = FLAGS | set(OTHERS), re.findall(r"`python tests/benchmarks/(\w+\.py)(.*?)`", SECTION)
    assert len(scripts) >= 4
    for script, arguments in scripts:
        source = (ROOT / "tests" / "benchmarks" / script).read_text()
        flags = re.findall(r"--\w+", arguments)
        assert all(f'"{flag}"' in source for flag in flags), script
        known |= set(flags)
    assert [flag for flag in re.findall(r"(?<![\w-])--\w+", our_text()) if flag not in known] == []


def test_every_command_line_is_understood():
    lines = re.findall(r"python -m trainer ?((?:\\\n|[^`\n])*)", SECTION)
    assert len(lines) > 12
    for line in lines:
        words = shlex.split(line.replace("\\\n", " ").split(" > ")[0].replace("train_steps=N", "train_steps=9"))
        command = words.pop(0) if words[0] in COMMANDS else "train"
        cli.make_parser(command).parse_args(words)


def test_every_assignment_is_of_an_hparam_and_a_value_that_it_may_have():
    found = []
    for text in quoted(our_text()):
        text = text.removeprefix("--hparams=")
        found += [part.split("=") for part in text.split(",")] if re.match(r"[a-z]\w*=", text) else []
    assert len(found) > 25
    for name, value in found:
        HParams(**{name: parse(FIELDS[name], value)})


def test_every_decode_hparam_is_taken_by_the_flag_or_refused():
    (table,) = [table for table in tables() if table[0][0] == "decode hparam"]
    for theirs, ours, said in table[2:]:
        if ours == "none":
            assert len(quoted(said)) == 10
            for name in quoted(said):
                with pytest.raises(UsageError, match=f"^--decode_hparams: {name}=7: "):
                    decode_hparams.merge(argparse.Namespace(decode_hparams=[f"{name}=7"]))
        for name, flag in zip(quoted(theirs), quoted(ours), strict=True):
            arguments = cli.make_parser("decode").parse_args(["--beam_size=1", f"--decode_hparams={name}=1"])
            decode_hparams.merge(arguments)
            assert getattr(arguments, flag.removeprefix("--")) == 1


def test_every_other_name_is_known():
    known = {*FIELDS, *hparams_sets.names(), *SEARCH_SPACES, *models.names(), *problems.names(), *COMMANDS, *OTHERS}
    known |= {choice for field in FIELDS.values() for choice in field.metadata["choices"] or ()}
    known |= {choice for action in ACTIONS for choice in action.choices or ()}
    known |= {*eval_metrics.METRICS, *eval_metrics.ALWAYS, "sequence_accuracy", "log_perplexity", *dir(Problem)}
    known |= {split for name in problems.names() for split in problems.get(name)(name=name).splits}
    known |= {name for table in tables() if table[0][0] == "decode hparam" for name in quoted(table[-1][-1])}
    known = {str(name) for name in known | set(quoted(row_of("`beam_size` `alpha` `extra_length`")[0]))}
    known |= set(quoted(row_of("`batch_size` `num_samples` `write_beam_scores` `return_beams`")[0]))
    texts = quoted(our_text())
    plain = [text for text in texts if not re.match(r"--|python |sacrebleu |[a-z]\w*=|ut_keras\.|[\w.]+/", text)]
    assert len(plain) > 100
    assert [name for text in plain for name in expanded(text) if not fnmatch.filter(known, name)] == []
    assert [name for name in OTHERS if name not in texts] == []


def test_every_path_module_and_score_is_there():
    scores = r"(test|train)/((teacher_forced|free_running|ponder_time)/)?\w+(/\w+)?"
    for text in quoted(our_text()):
        if re.match(r"[\w.]+/", text) and not re.fullmatch(scores, text):
            assert (ROOT / text).exists(), text
        elif text.startswith("ut_keras."):
            module, _, name = text.split("(")[0].rpartition(".")
            path = ROOT / module.replace(".", "/")
            source = path.with_suffix(".py") if "(" in text else path / f"{name}.py"
            assert "(" not in text or f"\ndef {name}({text.split('(')[1]}" in source.read_text(), text
            assert source.exists(), text


def test_every_set_of_tensor2tensor_is_named():
    named = {name for text in quoted(SECTION) if " " not in text for name in expanded(text)}
    theirs = [name for name in hparams_sets.names() if hparams_sets.summary(name).startswith(f"T2T's {name}")]
    assert set(golden_files.load_json("presets")) <= set(theirs)
    assert len(theirs) > 60
    assert [name for name in [*theirs, *SEARCH_SPACES] if name not in named] == []


@pytest.mark.parametrize(
    "name", [n for table in tables() for row in table if "import refuses another" in row[-1] for n in quoted(row[0])]
)
def test_import_refuses_another_value_of_what_has_one(name):
    with pytest.raises(UserError, match=f"^{name}='another' of tensor2tensor is not supported"):
        from_tensor2tensor({name: "another"}, HParams())


def test_what_import_switches_is_named():
    switched = {}
    for values in (
        {"recurrence_type": "act", "act_type": "global", "position_start_index": "step"},
        {"recurrence_type": "dwa"},
        {"recurrence_type": "gru"},
    ):
        switched |= HParams(**values).differences(from_tensor2tensor(values, HParams())[0])
    assert len(switched) == 7
    named = quoted(row_of("T2T's formulas")[1])
    assert [name for name, (_, theirs) in switched.items() if f"{name}={str(theirs).lower()}" not in named] == []
