"""LAMBADA: the last word of a passage, which nobody guesses from its last sentence alone."""

import dataclasses

import numpy as np

from problems import lambada_files, novel_text
from problems.packed import PackedSplit, Rows
from problems.problem import TEXT_METRICS, Problem, with_end
from problems.vocabulary import UNK, OpenWordVocabulary, split_words
from ut_keras.errors import UsageError, UserError

_NOVELS_AT_ONCE = 16


class Lambada(Problem):
    """What both tasks share: LAMBADA's files, its vocabulary, and passages of novels to train on.

    Splits: dev and test are the published ones; control has passages of the same novels that were not chosen for being
    hard; each is there if its file is. train is made of the archive's novels, or of `train_text`.

    The vocabulary is the beginning of the released list; any other word is the unknown word. Text: lower-cased words
    as in LAMBADA's files with blanks between them (`problems.novel_text.words` makes them of plain text).

    Args:
        vocabulary_size: how many words of the released list are known, the most frequent of 112,744 (problem argument).
        train_text: path, wildcards allowed, of novels of your own to train on instead of the archive's; UTF-8, .gz and
            .xz accepted (problem argument).
    """

    splits = ("train", "dev", "test", "control")
    arguments = {"vocabulary_size": 60000, "train_text": ""}

    def __init__(self, name, **arguments):
        super().__init__(name, **arguments)
        if not self.args["vocabulary_size"]:
            raise UsageError(f"{name}: argument vocabulary_size=0 leaves no word")
        self._data_names = {"official": None, "own": None}

    def _passages(self, sentences):
        """Yields passages, lists of words, of the sentences of a novel."""
        raise AssertionError(f"{type(self).__name__} has no passages")

    def _features(self, ids):
        """Returns (input ids or None, target ids) of a passage."""
        raise AssertionError(f"{type(self).__name__} has no features")

    def _possible(self, ids):
        """Returns whether the last word of a passage can be predicted at all."""
        return ids[-1] != UNK

    def _pack(self, root, manual_dir):
        try:
            official, own = self._prepare(root, manual_dir)
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from None
        settings = {
            "data": official.info.full_name,
            "own": own and own.info.full_name,
            "vocabulary_size": self.args["vocabulary_size"],
        }
        splits, words = self._open_or_pack(root, settings, lambda: self._make(official, own))
        vocabulary = OpenWordVocabulary(words).to_dict()
        return splits, {
            "vocabularies": {"inputs": vocabulary if self.target == "class" else None, "targets": vocabulary},
            "words_per_sentence": None,
            "data_names": {
                "official": official.builder_config.name,
                "own": own and own.builder_config.name,
            },
        }

    def _prepare(self, root, manual_dir):
        """Returns the prepared builders: of LAMBADA's files, and of one's own novels or None."""
        from problems import builders

        # One's own files first: they are checked at once, and the others may have to be downloaded.
        own, columns = None, {"text": str}
        if self.args["train_text"]:
            name, paths = self._data_names["own"], None
            try:
                paths = lambada_files.own_novels(self.args["train_text"])
                name = f"lambada_own_novels_{lambada_files.digest(paths)}"
            except UserError:
                # A run goes on where its novels are gone; where they are others, `prepare` refuses them.
                if paths is not None or name not in builders.prepared_config_names(builders.UtText, root):
                    raise
            own = builders.prepare_text(root, name, columns, {"train": lambda: lambada_files.read_own_novels(paths)})
        official, used = lambada_files.OFFICIAL, self._data_names["official"]
        return (
            builders.prepare_official(root, "lambada", columns, lambada_files.read_splits, official, manual_dir, used),
            own,
        )

    def _make(self, official, own):
        """Returns ({split: PackedSplit}, the words of the vocabulary)."""
        from problems import builders

        words = next(builders.rows(official, "vocabulary", ["text"]))[0].split("\n")
        size = self.args["vocabulary_size"]
        if size > len(words):
            raise UserError(f"{self.name}: vocabulary_size={size} is more than the {len(words):,} words of the list")
        self.vocabularies = {"inputs": None, "targets": OpenWordVocabulary(words[:size])}
        splits = {}
        for split in self.splits:
            builder = own if split == "train" and own else official
            if split in builder.info.splits:
                rows = builders.rows(builder, split, ["text"], _NOVELS_AT_ONCE if split == "train" else 1000)
                texts = (text for (text,) in rows)
                splits[split] = self._pack_split(split, self._of_novels(texts) if split == "train" else texts)
        return splits, words[:size]

    def _of_novels(self, novels):
        for novel in novels:
            sentences = (split_words(line) for line in novel.split("\n"))
            yield from (" ".join(passage) for passage in self._passages(s for s in sentences if s))

    def _pack_split(self, name, passages):
        vocabulary = self.vocabularies["targets"]
        inputs, targets = (Rows(vocabulary.size) for _ in range(2))
        impossible, drop = 0, name == "train" and self.target == "class"
        for passage in passages:
            ids = vocabulary.encode(passage, self.name)
            possible = self._possible(ids)
            impossible += not possible
            if possible or not drop:
                for rows, feature in zip((inputs, targets), self._features(ids), strict=True):
                    if feature is not None:
                        rows.add(feature)
        what = f"passages whose last word is not in {self._known_from}, {'dropped' if drop else 'never right'}"
        counts = {what: impossible} if drop or name != "train" else {}
        return PackedSplit(name, inputs.packed() if self.target == "class" else None, targets.packed(), counts)

    def _absent(self, split):
        official = lambada_files.OFFICIAL
        if split == "train":
            return (
                f"no novels to train on; put {official.file} from {official.url} into --manual_dir, or name your own "
                "novels with --problem_args=train_text=PATH"
            )
        return f"{lambada_files.PASSAGES[split]} was not found; {official.advice}"

    def _state(self):
        return {**super()._state(), "data_names": self._data_names}

    def _restore(self, state):
        super()._restore(state)
        self._data_names = state["data_names"]


class LambadaLm(Lambada):
    """LAMBADA by language modelling: the targets are the words of a passage and the end token, there are no inputs.

    The passages to train on follow each other in a novel, and training learns all of their words. What counts is the
    last word of a passage. Its accuracy: a word that is not in the vocabulary is never right, which bounds the accuracy
    by the share of those that are in it (94.9 % of the development set with the whole list). Its perplexity:
    the probability of the unknown word stands for that of any word that is not in the vocabulary.

    `decode` gives the next word of each line. Data and arguments: see `Lambada`.
    """

    scored = "last"
    selection = "loss"
    eval_metrics = TEXT_METRICS
    default_hparams_set = "universal_transformer_lambada_lm"
    _known_from = "the vocabulary"

    def max_output_length(self, input_length):
        return input_length * 0 + 1

    def _passages(self, sentences):
        return novel_text.passages(sentences)

    def _features(self, ids):
        return None, with_end(ids)


class LambadaRc(Lambada):
    """LAMBADA by reading comprehension: the inputs are a passage without its last word, the class is that word.

    The model chooses a word of the passage (`Features.pointer`). A passage that does not hold its last word, or holds
    it as the unknown word, is dropped from train and counted, and is never right elsewhere: about a fifth of dev and
    test; the others are scored apart as well, as "answerable". Every sentence of a novel ends a passage to train on.

    The loss and the perplexity of a passage that cannot be answered are those of a word with probability 2e-9
    (`ut_keras.models.pointer.ABSENT`). Data and arguments: see `Lambada`.
    """

    target = "class"
    default_hparams_set = "universal_transformer_lambada_rc"
    _known_from = "the vocabulary and the passage"

    @property
    def features(self):
        return dataclasses.replace(super().features, pointer=True)

    def groups(self, split):
        examples = (split.example(index) for index in range(len(split)))
        found = [e["targets"][0] != UNK and e["targets"][0] in e["inputs"] for e in examples]
        return {"answerable": np.array(found, bool)}

    def _passages(self, sentences):
        return novel_text.windows(sentences)

    def _features(self, ids):
        return with_end(ids[:-1]), ids[-1:]

    def _possible(self, ids):
        return ids[-1] != UNK and ids[-1] in ids[:-1]
