"""The files of the agreement problems, and what stands in them.

- `agr_50_mostcommon_10K.tsv` (Linzen, Dupoux and Goldberg 2016): sentences of Wikipedia with one dependency each; a
  header, then tab-separated rows as Python's csv module writes them. Used here: `sentence` (lower-cased words with
  blanks between them, all but the 10,000 most common replaced by their part-of-speech tag), `verb_pos` (VBZ or VBP),
  `verb_index` (from 1), `n_intervening` and `n_diff_intervening` (nouns between subject and verb, and those of them
  whose number is not the subject's: the attractors).
- `linzen_subset.tsv`: sentences of the same corpus that Gulordava et al. 2018 evaluate on, rare words kept. Columns
  `n_attractors`, `verb_index` (from 0), `correct`, `wrong`, `sentence`.
- BLiMP (Warstadt et al. 2020): pairs of sentences that differ in the verb, one JSON object a line.

All are read into rows of `COLUMNS`.
"""

import csv
import importlib.resources
import json
import re
import sys

import numpy as np

from problems import textio, verb_forms
from problems.sources import Official
from ut_keras.errors import UserError

TSV = "agr_50_mostcommon_10K.tsv"
OFFICIAL = Official(url=f"http://tallinzen.net/media/rnn_agreement/{TSV}.gz", file=f"{TSV}.gz", members=(TSV,))
SUBSET = "linzen_subset.tsv"
PARADIGMS = ("distractor_agreement_relational_noun", "regular_plural_subject_verb_agreement_1")

# context: the words before the verb; verb; wrong: its form of the other number, "" where the file has none;
# number: VBZ or VBP, "" where it is not known; attractors, intervening: nouns, -1 where the file does not count
# them; paradigm: index in PARADIGMS, -1 elsewhere.
COLUMNS = {
    "context": str,
    "verb": str,
    "wrong": str,
    "number": str,
    "attractors": int,
    "intervening": int,
    "paradigm": int,
}

_TSV_COLUMNS = ("sentence", "verb_pos", "verb_index", "n_intervening", "n_diff_intervening")
_SUBSET_COLUMNS = ("n_attractors", "verb_index", "correct", "wrong", "sentence")


def read_tsv(source, train_percent, dev_percent, seed):
    """Returns {"train", "dev", "test": iterator of rows} of Linzen's file, drawn by a shuffle with `seed`.

    Args:
        source: Source; the downloaded file itself, or a folder that holds it.
        train_percent, dev_percent: shares; the rest is test. No split is empty.
        seed: of the shuffle.

    Raises:
        UserError: the file or a line of it is not of the format, or there are fewer than three dependencies.
    """
    # Tuples until they are wanted: there are 1.5 million.
    rows = list(_dependencies(_lines(source, TSV), TSV))
    if len(rows) < 3:
        raise UserError(f"{source.path}: {TSV} has {len(rows)} dependencies; train, dev and test need one each")
    order = np.random.default_rng(seed).permutation(len(rows))
    train = min(max(1, len(rows) * train_percent // 100), len(rows) - 2)
    dev = train + min(max(1, len(rows) * dev_percent // 100), len(rows) - train - 1)
    parts = {"train": order[:train], "dev": order[train:dev], "test": order[dev:]}
    return {split: (_row(*rows[index]) for index in indices) for split, indices in parts.items()}


def read_subset(source):
    """Returns the rows of `linzen_subset.tsv`; UserError where a line is not of the format."""
    rows = []
    for where, fields in _table(source.lines(SUBSET), SUBSET, _SUBSET_COLUMNS):
        attractors, index = (_number(where, fields, name, 0) for name in ("n_attractors", "verb_index"))
        words = fields["sentence"].lower().split(" ")
        right, wrong = fields["correct"].lower(), fields["wrong"].lower()
        if index >= len(words) or words[index] != right:
            raise UserError(f"{where}: word {index} (from 0) of its sentence is not {right!r}")
        number = verb_forms.number_of(right, wrong)
        # A pair of equal forms is no pair.
        rows.append(_row(" ".join(words[:index]), right, wrong if number else "", number or "", attractors))
    return rows


def read_blimp():
    """Returns the rows of the two paradigms that are part of this package.

    The verb is the first word in which the two sentences differ, after the split of "n't" from its verb that Linzen's
    corpus has. In these 2,000 pairs that is where the release's fields of the one-prefix method say.
    """
    rows = []
    for paradigm, name in enumerate(PARADIGMS):
        for line in textio.read_lines(blimp_folder() / f"{name}.jsonl.gz"):
            pair = json.loads(line)
            good, bad = (words(pair[key]) for key in ("sentence_good", "sentence_bad"))
            index = next(i for i, (one, other) in enumerate(zip(good, bad)) if one != other)
            number = verb_forms.number_of(good[index], bad[index])
            context = " ".join(good[:index])
            rows.append(_row(context, good[index], bad[index], number or "", paradigm=paradigm))
    return rows


def blimp_folder():
    """Returns the folder with the files of the two paradigms that are part of this package."""
    return importlib.resources.files("problems") / "data" / "blimp"


def words(text):
    """Returns the words of plain English as Linzen's corpus spells them.

    >>> words("The bride doesn't exist.")
    ['the', 'bride', 'does', "n't", 'exist', '.']
    """
    text = re.sub(r"(n't|'s)\b", r" \1", text.lower())
    return re.sub(r"([.,;:!?])", r" \1 ", text).split()


def _row(context, verb, wrong, number, attractors=-1, intervening=-1, paradigm=-1):
    return {
        "context": context,
        "verb": verb,
        "wrong": wrong,
        "number": number,
        "attractors": attractors,
        "intervening": intervening,
        "paradigm": paradigm,
    }


def _dependencies(lines, name):
    for where, fields in _table(lines, name, _TSV_COLUMNS):
        words = fields["sentence"].split(" ")
        index = _number(where, fields, "verb_index", 1)
        if index > len(words):
            raise UserError(f"{where}: verb_index {index} is past the {len(words)} words of its sentence")
        if fields["verb_pos"] not in (verb_forms.SINGULAR, verb_forms.PLURAL):
            raise UserError(f"{where}: verb_pos {fields['verb_pos']!r} is neither VBZ nor VBP")
        intervening, attractors = (_number(where, fields, key, 0) for key in ("n_intervening", "n_diff_intervening"))
        context, verb = " ".join(words[: index - 1]), sys.intern(words[index - 1])
        yield context, verb, "", sys.intern(fields["verb_pos"]), attractors, intervening


def _table(lines, name, columns):
    """Yields (where: file and line, {column: str}) of a table with a header, for the wanted columns.

    A field with a quote or a tab in it is in quotes, as the csv module writes it; each row is one line.
    """
    header = None
    for number, line in enumerate(lines, 1):
        where = f"{name}: line {number}"
        try:
            fields = next(csv.reader([line], delimiter="\t"), [""]) if '"' in line else line.split("\t")
        except csv.Error as error:
            raise UserError(f"{where}: {error}") from None
        if header is None:
            header = fields
            missing = [column for column in columns if column not in header]
            if missing:
                raise UserError(f"{where}: the header has no column {missing[0]!r}")
            places = {column: header.index(column) for column in columns}
        elif len(fields) != len(header):
            raise UserError(f"{where}: {len(fields)} columns, and the header has {len(header)}")
        else:
            yield where, {column: fields[place] for column, place in places.items()}
    if header is None:
        raise UserError(f"{name} is empty")


def _number(where, fields, column, least):
    value = textio.natural(fields[column])
    if value is None or value < least:
        raise UserError(f"{where}: {column} {fields[column][:60]!r} is not an integer from {least}")
    return value


def _lines(source, name):
    """The lines of a file as they are read: it is large. A download is the file itself."""
    return textio.read_lines(source.path) if source.path.is_file() else source.each_line(name)
