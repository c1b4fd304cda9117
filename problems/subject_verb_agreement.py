"""Subject-verb agreement: the number of the verb from the words before it, by a classifier or by a language model.

What differs from tensor2tensor: the vocabulary is that of the training share, not of all examples, and has an unknown
word; accuracy is also given for each number of attractors; the language model's score is whether the right form of
the verb is more probable than the wrong one (there: nothing but accuracy).
"""

import array
import collections
import functools

import numpy as np

from problems import agreement_data, agreement_files, vocabulary_file
from problems.agreement_words import TrainedWords
from problems.packed import PackedSplit, Rows
from problems.problem import TEXT_METRICS, Problem, with_end
from problems.verb_forms import PLURAL, SINGULAR
from problems.vocabulary import NUM_RESERVED, OpenWordVocabulary, WordVocabulary
from ut_keras.errors import UsageError, UserError

_MOST_ATTRACTORS = 5
_CONTINUATION = 50  # words, to the verb or not
_NUMBERS = (SINGULAR, PLURAL)


class SubjectVerbAgreement(Problem):
    """What both problems share: data, vocabulary and groups.

    Splits:
        train, dev, test: shares of Linzen's file by a shuffle with `seed`; of test only the sentences in which all
            nouns between subject and verb are attractors (their number is not the subject's), or there are none.
        linzen_subset: sentences of the same corpus with rare words kept, of --manual_dir (linzen_subset.tsv); some of
            them may stand in the training share.
        blimp: the pairs of two paradigms of BLiMP, shipped; a word is lower-cased, and "n't" apart.
    A split is there where its file is. Without Linzen's file there is none to train on; a trained run is then still
    evaluated on the others, with its own vocabulary.

    The vocabulary is the words of the training share that occur there `min_count` times or more, up to the verb. All
    others are the unknown word, which those that are too rare train.

    Text: lower-cased words with blanks between them, punctuation apart, as in the corpus.

    Args:
        train_percent, dev_percent: shares of Linzen's file; the rest is test (problem arguments).
        min_count: occurrences in the training share below which a word is unknown (problem argument).
        seed: of the shuffle (problem argument).

    Source: Linzen, Dupoux and Goldberg 2016, arXiv:1611.01368; T2T data_generators/subject_verb_agreement.py.
    """

    splits = ("train", "dev", "test", "linzen_subset", "blimp")
    arguments = {"train_percent": 9, "dev_percent": 1, "min_count": 2, "seed": 1}

    def __init__(self, name, **arguments):
        super().__init__(name, **arguments)
        for argument in ("train_percent", "dev_percent"):
            if not 1 <= self.args[argument] <= 98:
                raise UsageError(f"{name}: argument {argument}={self.args[argument]} is not between 1 and 98")
        if self.args["train_percent"] + self.args["dev_percent"] > 99:
            raise UsageError(f"{name}: arguments train_percent and dev_percent leave nothing for the test split")
        self._reasons = {}
        self._data, self._digests = {}, {}

    def groups(self, split):
        attractors, paradigm = split.extras["attractors"], split.extras["paradigm"]
        found = {f"attractors_{count}": attractors == count for count in range(_MOST_ATTRACTORS + 1)}
        found |= {f"attractors_above_{_MOST_ATTRACTORS}": attractors > _MOST_ATTRACTORS}
        found |= {name: paradigm == index for index, name in enumerate(agreement_files.PARADIGMS)}
        return {name: members for name, members in found.items() if members.any()}

    def _pack(self, root, manual_dir):
        try:
            found = agreement_data.prepare(root, manual_dir, self.args, self._data if self._loaded else {})
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from None
        splits, words = {}, ()
        self._reasons = found.reasons
        if found.dependencies:
            settings = {"data": found.dependencies.info.full_name, "min_count": self.args["min_count"]}
            splits, words = self._open_or_pack(root, settings, functools.partial(self._make, found.dependencies))
        elif self._loaded:
            words = self._text_vocabulary.entries
        vocabulary = OpenWordVocabulary(words)
        for name, builder in found.others.items():
            settings = {"data": builder.info.full_name, "words": vocabulary_file.identity(vocabulary)}
            make = functools.partial(self._make_other, name, builder, TrainedWords(vocabulary))
            splits = {**splits, **self._open_or_pack(root, settings, make)[0]}
        digests = {name: splits[name].fingerprint for name in ("train", "dev", "test") if name in splits}
        vocabularies = self._vocabularies(vocabulary)
        return splits, {
            "vocabularies": {side: value and value.to_dict() for side, value in vocabularies.items()},
            "words_per_sentence": None,
            # Data of a run that are not here today are still its data.
            "data": {**(self._data if self._loaded else {}), **found.names},
            "digests": {**digests, **(self._digests if self._loaded else {})},
        }

    def _make(self, builder):
        """Returns ({"train", "dev", "test": PackedSplit}, words of the vocabulary)."""
        train = ((row["context"], row["verb"], row["number"]) for row in agreement_data.rows(builder, "train"))
        words = TrainedWords.count(train, self.args["min_count"])
        splits = {name: self._pack_rows(name, builder, words) for name in ("train", "dev", "test")}
        return splits, words.vocabulary.entries

    def _make_other(self, name, builder, words):
        return {name: self._pack_rows(name, builder, words)}, None

    def _pack_rows(self, name, builder, words):
        """Returns the `PackedSplit` of the rows that the problem can use; the others are counted."""
        contexts, answers = (Rows(words.vocabulary.size) for _ in range(2))
        extras = {key: array.array("i") for key in ("attractors", "paradigm", "wrong")}
        counts = collections.Counter()
        for row in agreement_data.rows(builder, name):
            if name == "test" and row["intervening"] != row["attractors"]:
                counts["left out, for a noun between subject and verb that is no attractor"] += 1
                continue
            if not self._add(row, words, contexts, answers, extras["wrong"], counts):
                continue
            for key in ("attractors", "paradigm"):
                extras[key].append(row[key])
        if not extras["wrong"]:
            del extras["wrong"]
        inputs = contexts.packed() if contexts.lengths else None
        extras = {key: np.array(values, np.int32) for key, values in extras.items()}
        return PackedSplit(name, inputs, answers.packed(), dict(counts), extras)

    def _add(self, row, words, contexts, answers, wrong, counts):
        """Adds one example to the columns; returns whether there is one, and counts what is special about it."""
        raise AssertionError(f"{type(self).__name__} adds no examples")

    def _absent(self, split):
        return self._reasons.get(split, "its file was not found")

    def _refuse_other_data(self):
        """What a run was trained on must not have changed; the other evaluation data may come and go."""
        if self._loaded is None:
            return
        self._refuse_other_vocabulary()
        for name, digest in self._digests.items():
            if name in self._splits and (found := self._splits[name].fingerprint) != digest:
                raise UserError(
                    f"{self.name}: the data in {self.data_dir} are not those of the run: the fingerprint of {name} is "
                    f"{found[:12]} and the run's {digest[:12]}; give it its own data, or choose another --output_dir"
                )

    def _state(self):
        return {**super()._state(), "data": self._data, "digests": self._digests}

    def _restore(self, state):
        super()._restore(state)
        self._data, self._digests = state["data"], state["digests"]


class NumberPrediction(SubjectVerbAgreement):
    """The words before the verb to the verb's number: one class, VBZ (singular) or VBP (plural).

    Inputs end in an end token. Of the other evaluation splits only sentences are kept whose pair of forms says which
    is the singular; the number of BLiMP's past forms (was, were) counts as well.
    """

    target = "class"
    default_hparams_set = "universal_transformer_sva"

    def _vocabularies(self, words):
        return {"inputs": words, "targets": WordVocabulary(_NUMBERS)}

    def _add(self, row, words, contexts, answers, wrong, counts):
        if not row["number"]:
            counts["left out, for a verb whose number is not known"] += 1
            return False
        contexts.add(with_end(words.vocabulary.encode(row["context"])))
        answers.add([_NUMBERS.index(row["number"]) + NUM_RESERVED])
        return True


class LanguageModeling(SubjectVerbAgreement):
    """A language model of the words up to the verb, scored by whether it prefers the verb's right form.

    Targets are the words before the verb, the verb and an end token. Where the verb or its form of the other number
    is not in the vocabulary there is nothing to compare: such examples count in the word's accuracy and perplexity,
    not in the preference, and their number is printed.
    """

    scored = "last"
    selection = "loss"
    eval_metrics = TEXT_METRICS
    default_hparams_set = "universal_transformer_sva_lm"

    def max_output_length(self, input_length):
        return input_length * 0 + _CONTINUATION

    def _vocabularies(self, words):
        return {"inputs": None, "targets": words}

    def _add(self, row, words, contexts, answers, wrong, counts):
        answers.add(with_end(words.vocabulary.encode(f"{row['context']} {row['verb']}")))
        wrong.append(words.alternative(row["verb"], row["number"], row["wrong"]))
        if not wrong[-1]:
            counts["without a pair of verb forms in the vocabulary"] += 1
        return True
