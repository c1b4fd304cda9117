"""The bAbI question answering tasks in the encoding of the Universal Transformer paper.

Legend: N examples, S sentences of a story and its question, W words of a sentence.
"""

import numpy as np

from problems import babi_files, stories
from problems.packed import Packed, PackedSplit
from problems.problem import Problem
from problems.vocabulary import WordVocabulary
from ut_keras.errors import UsageError, UserError

_MAX_FACTS = 70
_MAX_FACTS_TASK_3 = 130


class Babi(Problem):
    """A story and a question to an answer that is one class.

    Inputs are [S, W]: each statement of the story a row of word ids, the question the last row; text
    is lower-cased and without punctuation; earlier questions about the story leave no trace. A
    story keeps its last 70 statements, or its last 130 where task 3 takes part (the paper's limits).
    An answer of several parts ("football,milk") is one class. The classes are the ids of the
    vocabulary, which is the closed list of the words and answers of the chosen tasks' files, the
    test files included (as in the paper and tensor2tensor; no word but for answers is special to a
    test file). A word outside of it is an error in `encode_input`.

    The dev split is a share of the *stories* of the training file. The official test file is the test split.

    Text: one line of sentences, the question last (see stories.py).

    Args:
        tasks: task numbers, 1 to 20; their examples are trained on jointly.
        size: "1k" (shipped) or "10k" (download or manual_dir).
        dev_percent: share of the training stories in the dev split (problem argument).
        seed: which stories these are (problem argument).
    """

    target = "class"
    default_hparams_set = "adaptive_universal_transformer_babi"
    arguments = {"dev_percent": 10, "seed": 0}

    def __init__(self, name, tasks, size, **arguments):
        super().__init__(name, **arguments)
        if not 1 <= self.args["dev_percent"] <= 90:
            raise UsageError(f"{name}: argument dev_percent={self.args['dev_percent']} is not between 1 and 90")
        self._tasks = tuple(tasks)
        self._size = size

    @property
    def max_facts(self):
        """The most statements of a story that are kept, the last ones."""
        return _MAX_FACTS_TASK_3 if 3 in self._tasks else _MAX_FACTS

    def encode_input(self, text):
        vocabulary = self._known("inputs")
        rows = []
        for words in stories.sentences(text):
            if len(words) > self.words_per_sentence:
                raise UserError(
                    f"{self.name}: a sentence of {len(words)} words is longer than {self.words_per_sentence}, "
                    f"the longest of its data: {' '.join(words)[:60]!r}"
                )
            ids = vocabulary.encode(words, self.name)
            rows.append(ids + [0] * (self.words_per_sentence - len(ids)))
        return np.array(rows[-self.max_facts - 1 :], np.int32).reshape(-1, self.words_per_sentence)

    def cut(self, text):
        facts = len(stories.sentences(text)) - 1
        return f"a story of {facts} statements keeps its last {self.max_facts}" if facts > self.max_facts else ""

    def decode_input(self, ids):
        sentences = [self._known("inputs").decode(row) for row in ids if any(row)]
        return "".join(f"{sentence}. " for sentence in sentences[:-1]) + "".join(f"{s}?" for s in sentences[-1:])

    def text_encoder(self):
        from problems import text_graph

        return text_graph.StoryEncoder(self._known("inputs"), self.words_per_sentence, self.max_facts + 1)

    def _pack(self, root, manual_dir):
        from problems import builders

        settings = {"tasks": self._tasks, "size": self._size, **self.args}
        # Files are read before anything is written: a missing or broken one leaves no trace.
        try:
            name, source = self._find_data(root, manual_dir)
            examples = None
            if name not in builders.prepared_config_names(builders.UtBabi, root):
                if source is None:
                    builders.require(babi_files.OFFICIAL)
                else:
                    examples = babi_files.read_splits(source, **settings)
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from None
        config = builders.BabiConfig(name=name, examples=examples, **settings)
        builder = builders.prepare(builders.UtBabi, config, root)

        def make():
            texts = {split: builders.read(builder, split) for split in self.splits}
            return _pack_texts(texts, self.max_facts)

        packing = {"data": builder.info.full_name, "max_facts": self.max_facts}
        splits, extra = self._open_or_pack(root, packing, make)
        vocabulary = WordVocabulary(extra["words"]).to_dict()
        return splits, {
            "vocabularies": {"inputs": vocabulary, "targets": vocabulary},
            "words_per_sentence": extra["words_per_sentence"],
            "data_name": name,
        }

    def _find_data(self, root, manual_dir):
        """Returns (config name, source or None): which data to use, and where to make them from."""
        from problems import builders

        tasks = "all_tasks" if len(self._tasks) > 1 else f"task{self._tasks[0]}"
        name = f"{tasks}_{self._size}_dev{self.args['dev_percent']}_seed{self.args['seed']}"
        if self._size == "1k":
            return name, babi_files.shipped()
        there = builders.prepared_config_names(builders.UtBabi, root)
        if self._data_name in there:
            return self._data_name, None
        if manual_dir is not None:
            source = babi_files.find(manual_dir, self._size, self._tasks)
            digest = source.digest(babi_files.paths(source, self._size, self._tasks))
            return builders.BY_HAND.format(name) + digest, source
        return builders.prepared_before(builders.UtBabi, name, root) or name, None


class _Sentences:
    """The distinct sentences of the data, each a list of words; a statement that occurs again costs one look-up."""

    def __init__(self):
        self.words = []
        self._rows = {}

    def rows(self, line):
        """Returns the row numbers of the sentences of a line of text (bytes)."""
        if line not in self._rows:
            found = stories.sentences(line.decode("utf-8"))
            self._rows[line] = range(len(self.words), len(self.words) + len(found))
            self.words += found
        return self._rows[line]


def _pack_texts(texts, max_facts):
    """Returns ({split: PackedSplit}, {"words", "words_per_sentence"}) of {split: iterable of batches of examples}."""
    sentences, rows, answers = _Sentences(), {}, {}
    for split, batches in texts.items():
        rows[split], answers[split] = [], []
        for batch in batches:
            for story, question in zip(batch["story"], batch["question"], strict=True):
                rows[split].append([row for line in (*story.split(b"\n"), question) for row in sentences.rows(line)])
            answers[split] += [answer.decode("utf-8").lower() for answer in batch["answer"]]
    words = {word for sentence in sentences.words for word in sentence}
    vocabulary = WordVocabulary(sorted(words.union(*answers.values())))
    width = max(len(sentence) for sentence in sentences.words)
    ids = np.zeros((len(sentences.words), width), np.int32)
    for row, sentence in enumerate(sentences.words):
        ids[row, : len(sentence)] = [vocabulary.id_of(word) for word in sentence]
    splits = {}
    for split, stories_of_split in rows.items():
        kept = [story[-max_facts - 1 :] for story in stories_of_split]
        cut = sum(len(story) > max_facts + 1 for story in stories_of_split)
        splits[split] = PackedSplit(
            split,
            Packed.from_tokens(ids[np.concatenate(kept)], [len(story) for story in kept]),
            Packed.from_tokens(np.array([vocabulary.id_of(a) for a in answers[split]]), np.ones(len(kept), np.int32)),
            {f"stories cut to their last {max_facts} statements": cut},
        )
    return splits, {"words": vocabulary.entries, "words_per_sentence": width}
