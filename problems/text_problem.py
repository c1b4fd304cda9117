"""A problem whose examples are text: the machinery between them and packed ids.

A user's own problem needs no more than this (see README.md, "A problem of your own").
"""

import collections
import functools
import hashlib
import re

import numpy as np

from problems import vocabulary_file
from problems.packed import Packed, PackedSplit, Rows
from problems.problem import TEXT_METRICS, Problem, log, with_end
from problems.vocabulary import BLANKS, ByteVocabulary, OpenWordVocabulary, WordVocabulary, split_words
from ut_keras.errors import UsageError, UserError

# The kinds, and the least ids of each: the reserved ones, of subwords all bytes, and one more.
_KINDS = {
    "subwords": OpenWordVocabulary.reserved + 256 + 1,
    "words": OpenWordVocabulary.reserved + 1,
    "bytes": 0,
}
_AT_ONCE = 10_000
_SHOWN = 20  # classes that are named
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair, which is no character
_SAMPLE = 1_000_000  # training examples that a vocabulary is made from, evenly spaced


class TextProblem(Problem):
    """Examples that are text; a subclass gives `examples`.

    The vocabulary is made from the train split alone, and inputs and targets share it. The classes of a problem with
    target "class" are the distinct targets of train, in the order of their text; each is one class whatever
    characters it has. An example with a blank input is left out, and so is a blank line of a language model; both
    are counted.

    The data are named by a digest of all examples: another file, seed or line of code never finds old data.

    Attributes:
        columns: ("inputs", "targets"), or ("targets",) for a language model.
        stored_columns, stored_splits: {ours: name in the dataset} where it has other names than ours.

    Args:
        vocabulary: "subwords" (SentencePiece, any text), "words" (the most frequent ones; others are unknown) or
            "bytes" (problem argument).
        vocabulary_size: the most ids of subwords or words (problem argument).
        vocabulary_file: a SentencePiece model (.model), a file of tensor2tensor's (vocab.*.subwords) or a list of
            words, one a line, to be used instead (problem argument).

    Raises:
        UsageError: an argument does not fit.
    """

    columns = ("inputs", "targets")
    stored_columns = {}
    stored_splits = {}
    eval_metrics = TEXT_METRICS
    arguments = {"vocabulary": "subwords", "vocabulary_size": 8000, "vocabulary_file": ""}

    def __init__(self, name, **arguments):
        super().__init__(name, **arguments)
        if self.args["vocabulary"] not in _KINDS:
            raise UsageError(f"{name}: vocabulary={self.args['vocabulary']!r} is not one of {', '.join(_KINDS)}")
        size, least = self.args["vocabulary_size"], _KINDS[self.args["vocabulary"]]
        if size < least and not self.args["vocabulary_file"]:
            raise UsageError(
                f"{name}: vocabulary_size={size} is too small: {self.args['vocabulary']} take {least} or more"
            )

    def prepare(self, data_dir=None, manual_dir=None):
        """As `Problem.prepare`; says which classes there are."""
        super().prepare(data_dir, manual_dir)
        if self.target == "class":
            labels = self.vocabularies["targets"].entries
            shown = ", ".join(map(repr, labels[:_SHOWN])) + (", ..." if labels[_SHOWN:] else "")
            log(f"{self.name}: {len(labels)} classes: {shown}")
        return self

    def examples(self, split, manual_dir):
        """Yields the examples of a split: {"inputs": text, "targets": text}, the same ones at every call.

        Args:
            split: one of `splits`.
            manual_dir: the folder of --manual_dir; None where it is not given.
        """
        raise UsageError(f"{self.name} has no examples")

    def given_vocabulary(self):
        """Returns the vocabulary that is not made from the data, or None: here the one in `vocabulary_file`."""
        given = vocabulary_file.chosen(self, self.columns[0])
        return ByteVocabulary() if given is None and self.args["vocabulary"] == "bytes" else given

    def _pack(self, root, manual_dir):
        vocabulary = self.given_vocabulary()
        builder = self._builder(root, manual_dir)
        settings = {
            "data": builder.info.full_name,
            "target": self.target,
            "vocabulary": [self.args["vocabulary"], self.args["vocabulary_size"]],
        }
        if vocabulary is not None:
            settings["vocabulary"] = vocabulary_file.identity(vocabulary)
        return self._open_or_pack(root, settings, functools.partial(self._make, builder, vocabulary))

    def _builder(self, root, manual_dir):
        """Returns the prepared builder with the columns of `columns`."""
        rows = {split: self._checked(split, self.examples(split, manual_dir)) for split in self.splits}
        self._check_classes(rows)
        return self._prepare(root, f"{self.name}_{_digest(rows)}", rows)

    def _prepare(self, root, name, rows):
        from problems import builders

        splits = {split: functools.partial(iter, examples) for split, examples in rows.items()}
        return builders.prepare_text(root, name, dict.fromkeys(self.columns, str), splits)

    def _checked(self, split, examples):
        rows = []
        for number, example in enumerate(examples, 1):
            if not isinstance(example, dict) or set(example) != set(self.columns):
                raise UserError(f"{self.name}: {split} example {number} is not {_shape(self.columns)}: {example!r:.80}")
            for column, text in example.items():
                if not isinstance(text, str) or _SURROGATE.search(text):
                    raise UserError(f"{self.name}: {split} example {number}: {column} is not a text: {text!r:.60}")
            rows.append({column: example[column] for column in self.columns})
        if not any(_filled(row, self.columns[0]) for row in rows):
            raise UserError(f"{self.name}: split {split} has no example that is not blank")
        return rows

    def _check_classes(self, rows):
        """UserError where a class of another split does not occur in train, or train has one class alone."""
        if self.target != "class":
            return
        known = {row["targets"] for row in rows["train"] if _filled(row, "inputs")}
        if len(known) < 2:
            raise UserError(f"{self.name}: all examples of train have the label {min(known)!r}; it takes two to learn")
        for split, examples in rows.items():
            for number, row in enumerate(examples, 1):
                if _filled(row, "inputs") and row["targets"] not in known:
                    where = self._place(split, number)
                    raise UserError(f"{self.name}: {where}: the label {row['targets']!r} does not occur in train")

    def _place(self, split, number):
        return f"{split} example {number}"

    def _make(self, builder, vocabulary):
        """Returns ({split: PackedSplit}, state)."""
        stored = {split: self.stored_splits.get(split, split) for split in self.splits}
        columns = [self.stored_columns.get(name, name) for name in self.columns]
        rows = {}
        for split in [split for split in self.splits if stored[split] in builder.info.splits]:
            found, blank = _read(builder, stored[split], columns)
            rows[split] = dict(zip(self.columns, found)), blank
        train = rows["train"][0]
        if vocabulary is None:
            columns = [column for column in self.columns if (column, self.target) != ("targets", "class")]
            every = -(-len(train[columns[0]]) // _SAMPLE)
            examples = zip(*(train[column][::every] for column in columns))
            vocabulary = self._train(text for example in examples for text in example)
        labels = WordVocabulary(sorted(set(train["targets"]))) if self.target == "class" else None
        splits = {split: self._pack_split(split, *found, vocabulary, labels) for split, found in rows.items()}
        state = {
            "inputs": vocabulary.to_dict() if "inputs" in self.columns else None,
            "targets": (labels or vocabulary).to_dict(),
        }
        return splits, {"vocabularies": state, "words_per_sentence": None}

    def _train(self, lines):
        size = self.args["vocabulary_size"]
        if self.args["vocabulary"] == "words":
            return _frequent_words(lines, size)
        from problems.subwords import SubwordVocabulary

        return SubwordVocabulary.train(lines, size, self.name)

    def _pack_split(self, split, texts, blank, vocabulary, labels):
        inputs = pack_texts(vocabulary, texts["inputs"]) if "inputs" in self.columns else None
        if labels is None:
            targets = pack_texts(vocabulary, texts["targets"])
        else:
            ids = np.array([labels.id_of(label) for label in texts["targets"]], np.int32)
            targets = Packed.from_tokens(ids, np.ones(len(ids), np.int32))
        what = "examples with a blank input" if inputs is not None else "blank lines"
        return PackedSplit(split, inputs, targets, {f"{what} were left out": blank})


def pack_texts(vocabulary, texts):
    """Returns the `Packed` ids of a list of texts, an end token after each."""
    rows = Rows(vocabulary.size)
    for start in range(0, len(texts), _AT_ONCE):
        for ids in vocabulary.encode_all(texts[start : start + _AT_ONCE]):
            rows.add(with_end(ids))
    return rows.packed()


def _frequent_words(lines, size):
    """Returns the vocabulary of the most frequent words, at most `size` ids; of equals the first in the alphabet."""
    counts = collections.Counter(word for line in lines for word in split_words(line))
    most = size - OpenWordVocabulary.reserved
    return OpenWordVocabulary(sorted(counts, key=lambda word: (-counts[word], word))[:most])


def _read(builder, split, columns):
    """Returns (a list of str for each column, number of rows whose first column is blank, which are left out)."""
    from problems import builders

    texts, blank = [[] for _ in columns], 0
    for row in builders.rows(builder, split, columns):
        if not row[0].strip(BLANKS):
            blank += 1
            continue
        for column, text in zip(texts, row):
            column.append(text)
    return texts, blank


def _filled(row, column):
    return bool(row[column].strip(BLANKS))


def _shape(columns):
    return "{" + ", ".join(f'"{column}": text' for column in columns) + "}"


def _digest(rows):
    digest = hashlib.sha256()
    for split, examples in rows.items():
        for row in (split, *examples):
            digest.update(repr(row).encode())
    return digest.hexdigest()[:8]
