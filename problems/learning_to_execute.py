"""Learning to execute: what does this program print? And its exercises in memory."""

import dataclasses
import pathlib
import sys

import numpy as np

from problems import learning_to_execute_language as language
from problems import textio
from problems.closed_vocabularies import CharacterVocabulary
from problems.learning_to_execute_programs import MEMORY_KINDS, PROGRAM_KINDS, Task
from problems.packed import PackedSplit
from problems.problem import Problem
from problems.vocabulary import SymbolVocabulary
from ut_keras.errors import UsageError, UserError

_AUTHORS = "lte_author_generator_kind0.tsv"
_HEADER = "length\tnesting\tprogram\ttarget"
_DIGITS = "0123456789"
_MOST_NESTING = len(language.VARIABLES)
_MOST_DIGITS = 15  # of a number: more than a draw of 53 bits would not be uniform
_BINS = 10  # lengths of one group of the memory tasks


class LearningToExecute(Problem):
    """A program to what it prints, or a string of digits to a string of digits; character by character.

    Splits:
        train, dev, test: each example has a random length and nesting up to the greatest (the authors'
            "mix" strategy, without a curriculum). No two of these splits share an input.
        hardest: the greatest length and nesting alone, as the authors test; no input of it is in train or dev.
        authors ("program" alone): programs of the authors' own generator, where `manual_dir` has a file
            lte_author_generator_kind0.tsv (or .tsv.gz) of the columns length, nesting, program, target.
    Scores are also given for each length and nesting (memory: for ten lengths at once). `exact_length_split`
    gives digit strings of exactly one length for the memory tasks.

    Text: a program is one line in which `#` stands for a line break and every blank counts:
    "c=3283;#print((c+7938))" prints "11221". Numbers have their most significant digit first. Memory: a line
    of digits, with or without blanks between them.

    Args:
        kind: "program", "control", "addition", "copy", "double" or "reverse" (`learning_to_execute_programs.Task`).
        length: digits of a number, or of the string (problem argument; 5, memory: 55).
        nesting: operations of a program (problem argument of program and control; 2).
        train_size, dev_size, test_size, hardest_size: examples of a split (problem arguments).
        seed: of the generation (problem argument).
    """

    splits = ("train", "dev", "test", "hardest")

    def __init__(self, name, kind, **arguments):
        self._kind = kind
        composed = kind in PROGRAM_KINDS and kind != "addition"
        self.arguments = {
            "length": 5 if kind in PROGRAM_KINDS else 55,
            **({"nesting": 2} if composed else {}),
            "train_size": 300_000 if composed else 100_000,
            "dev_size": 1_000,
            "test_size": 1_000,
            "hardest_size": 1_000,
            "seed": 0,
        }
        super().__init__(name, **arguments)
        for key in ("length", "train_size", "dev_size"):
            if not self.args[key]:
                raise UsageError(f"{name}: argument {key}=0 leaves no examples")
        if kind in PROGRAM_KINDS and self.args["length"] > _MOST_DIGITS:
            raise UsageError(f"{name}: argument length={self.args['length']} is above {_MOST_DIGITS} digits")
        nesting = self.args.get("nesting", 1)
        if not 1 <= nesting <= _MOST_NESTING:
            raise UsageError(f"{name}: argument nesting={nesting} is not between 1 and {_MOST_NESTING}")
        self._task = Task(
            kind=kind,
            length=self.args["length"],
            nesting=nesting,
            sizes=tuple((split, self.args[f"{split}_size"]) for split in self.splits),
            seed=self.args["seed"],
        )
        if kind == "program":
            self.splits = (*self.splits, "authors")
        vocabulary = SymbolVocabulary(_DIGITS) if kind in MEMORY_KINDS else CharacterVocabulary(language.CHARACTERS)
        self.vocabularies = {"inputs": vocabulary, "targets": vocabulary}
        self.default_hparams_set = _HPARAMS_SETS[kind]

    def prepare(self, data_dir=None, manual_dir=None):
        rows = None
        if manual_dir is not None and self._kind == "program":
            try:
                rows = _read_authors(pathlib.Path(manual_dir).expanduser())
            except UserError as error:
                raise UserError(f"{self.name}: {error}") from None
        super().prepare(data_dir, manual_dir)
        # Not part of the run's data, so that it can be put beside them, or left out, later.
        if rows is not None:
            split = self._splits["authors"] = self._authors(rows)
            seen = int(split.extras["in_train"].sum())
            print(f"{self.name}: authors {len(split):,}, {seen:,} of them in train as well", file=sys.stderr)
        return self

    def exact_length_split(self, length, count, seed=0):
        """Returns `count` examples whose inputs have exactly `length` digits (the end token not counted).

        They are a function of (problem, length, count, seed); none of them is in train or dev.
        """
        if self._kind not in MEMORY_KINDS:
            return super().exact_length_split(length, count, seed)
        if length < 1:
            raise UsageError(f"{self.name} has no inputs of {length} digits; the shortest has 1")
        return self._pack_rows(f"length_{length}", [_row(row) for row in self._task.exact(length, count, seed)])

    def max_output_length(self, input_length):
        return 2 * input_length if self._kind == "double" else input_length

    def groups(self, split):
        groups = {}
        for key, values in split.extras.items():
            if key == "in_train":
                groups["not_in_train"] = values == 0
            elif key == "length" and self._kind in MEMORY_KINDS:
                bins = (values - 1) // _BINS
                groups |= {f"length_{i * _BINS + 1}_to_{(i + 1) * _BINS}": bins == i for i in np.unique(bins)}
            elif self._kind in ("program", "control") or key == "length":
                groups |= {f"{key}_{value}": values == value for value in np.unique(values)}
        return groups

    def _absent(self, split):
        if split != "authors":
            return f"argument {split}_size=0 leaves no examples"
        return f"put {_AUTHORS}.gz into a folder and name that with --manual_dir"

    def _pack(self, root, manual_dir):
        from problems import builders

        task = self._task
        sizes = "_".join(f"{split}{size}" for split, size in task.sizes)
        builder = builders.prepare_text(
            root,
            f"learning_to_execute_{task.kind}_length{task.length}_nesting{task.nesting}_{sizes}_seed{task.seed}",
            {"inputs": str, "targets": str, "length": int, "nesting": int},
            {split: lambda split=split: map(_as_columns, task.split(split)) for split, size in task.sizes if size},
        )

        def make():
            return {split: self._pack_split(builder, split) for split, size in task.sizes if size}, None

        splits, _ = self._open_or_pack(root, {"data": builder.info.full_name, **self._state()}, make)
        return splits, self._state()

    def _pack_split(self, builder, split):
        from problems import builders

        batches = builders.read(builder, split)
        columns = ("inputs", "targets", "length", "nesting")
        return self._pack_rows(split, [row for batch in batches for row in zip(*(batch[name] for name in columns))])

    def _pack_rows(self, split, rows):
        """Returns the PackedSplit of a list of (inputs, targets, length, nesting), the texts as bytes."""
        from problems.packed_characters import pack_characters

        inputs, targets, lengths, nestings = zip(*rows, strict=True)
        entries = self.vocabularies["inputs"].entries
        extras = {"length": np.array(lengths, np.int32), "nesting": np.array(nestings, np.int32)}
        return PackedSplit(split, pack_characters(entries, inputs), pack_characters(entries, targets), extras=extras)

    def _authors(self, rows):
        made = self._pack_rows("authors", rows)
        train = self._splits["train"].inputs
        known = {train[index].tobytes() for index in range(len(train))}
        seen = np.array([made.inputs[index].tobytes() in known for index in range(len(made))], np.int32)
        return dataclasses.replace(made, extras={**made.extras, "in_train": seen})


_HPARAMS_SETS = {
    "program": "universal_transformer_program",
    "control": "universal_transformer_program",
    "addition": "universal_transformer_program",
    "copy": "universal_transformer_memory",
    "double": "universal_transformer_memory",
    "reverse": "universal_transformer_memory_reverse",
}


def _as_columns(example):
    return example._asdict()


def _row(example):
    return example.inputs.encode(), example.targets.encode(), example.length, example.nesting


def _read_authors(folder):
    """Returns the rows of the authors' file in `folder`, each program run to check it, or None where there is none.

    Raises:
        UserError: there is no such folder, or the file is broken, or a program does not print what the file says; the
            message names the line.
    """
    from problems import sources

    if not folder.exists():
        raise UserError(f"--manual_dir={folder} does not exist")
    source = sources.Source(folder)
    if not source.has(_AUTHORS):
        return None
    lines = source.lines(_AUTHORS)
    if lines[:1] != [_HEADER]:
        raise UserError(f"{folder}: {_AUTHORS} does not begin with the line {_HEADER!r}")
    if not lines[1:]:
        raise UserError(f"{folder}: {_AUTHORS} holds no program")
    return [_checked(line, f"{folder}: {_AUTHORS}, line {number}") for number, line in enumerate(lines[1:], 2)]


def _checked(line, where):
    parts = line.split("\t")
    if len(parts) != 4 or None in (textio.natural(parts[0]), textio.natural(parts[1])):
        raise UserError(f"{where}: not a length, a nesting, a program and a target with tabs between them")
    length, nesting, program, target = parts
    program = program.replace("\\n", language.LINE_BREAK)
    try:
        printed = str(language.run(program))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if printed != target:
        raise UserError(f"{where}: the program prints {printed}, not {target}")
    return program.encode(), target.encode(), int(length), int(nesting)
