"""A user's own package, as --usr_dir takes it: problems that train in seconds, and hparams sets for them.

Standard library only at import, so that names can be looked up without TensorFlow.
"""

import dataclasses

from problems.problem import Problem
from problems.vocabulary import OpenWordVocabulary, SymbolVocabulary, WordVocabulary
from ut_keras.hparams import HParams
from ut_keras.registry import hparams_sets, problems


def _packed(name, pairs):
    import numpy as np

    from problems.packed import Packed, PackedSplit

    def feature(index):
        examples = [pair[index] for pair in pairs]
        return Packed.from_tokens(np.concatenate(examples), [len(example) for example in examples])

    return PackedSplit(name, None if pairs[0][0] is None else feature(0), feature(1))


class _Tiny(Problem):
    default_hparams_set = "tiny"
    arguments = {"train_size": 60}

    def prepare(self, data_dir=None, manual_dir=None):
        sizes = {"train": self.args["train_size"], "dev": 12, "test": 12}
        self._splits = {name: _packed(name, self._pairs(name, size)) for name, size in sizes.items()}
        self.fingerprint = "/".join(split.fingerprint for split in self._splits.values())
        self._refuse_other_data()
        return self


@problems.register("tiny_copy")
class TinyCopy(_Tiny):
    """Strings of 1 to 6 of three symbols, to be copied."""

    def __init__(self, name="tiny_copy", **arguments):
        super().__init__(name, **arguments)
        vocabulary = SymbolVocabulary("abc")
        self.vocabularies = {"inputs": vocabulary, "targets": vocabulary}

    def _pairs(self, split, size):
        import numpy as np

        rng = np.random.default_rng([size, len(split)])
        strings = [np.append(rng.integers(2, 5, rng.integers(1, 7)), 1) for _ in range(size)]
        return [(string, string) for string in strings]


@problems.register("tiny_class")
class TinyClass(_Tiny):
    """Sentences of two words; the answer is the first word of the last one."""

    target = "class"
    default_hparams_set = "tiny_class"
    words_per_sentence = 2

    def __init__(self, name="tiny_class", **arguments):
        super().__init__(name, **arguments)
        vocabulary = WordVocabulary(["red", "green", "blue"])
        self.vocabularies = {"inputs": vocabulary, "targets": vocabulary}

    def encode_input(self, text):
        import numpy as np

        words = [self.vocabularies["inputs"].id_of(word) for word in text.split()]
        return np.array(words, np.int32).reshape([-1, 2])

    def decode_input(self, ids):
        return " ".join(self.vocabularies["inputs"].decode(row) for row in ids)

    def _pairs(self, split, size):
        import numpy as np

        rng = np.random.default_rng([size, len(split)])
        stories = [rng.integers(2, 5, [rng.integers(1, 5), 2]) for _ in range(size)]
        return [(story, story[-1, :1]) for story in stories]


@problems.register("tiny_label")
class TinyLabel(_Tiny):
    """A line of words; the label, which holds a blank, says whether the first is "up"."""

    target = "class"
    default_hparams_set = "tiny_class"

    def __init__(self, name="tiny_label", **arguments):
        super().__init__(name, **arguments)
        labels = WordVocabulary(["going up", "not at all"])
        self.vocabularies = {"inputs": OpenWordVocabulary(["up", "down"]), "targets": labels}

    def _pairs(self, split, size):
        import numpy as np

        rng = np.random.default_rng([size, len(split)])
        lines = [np.append(rng.integers(2, 5, rng.integers(1, 5)), 1) for _ in range(size)]
        return [(line, np.array([2 if line[0] == 3 else 3])) for line in lines]


@problems.register("tiny_text")
class TinyText(_Tiny):
    """A language model of "one a a a one": the last word is the first one, and only that counts. No test split."""

    default_hparams_set = "tiny_text"
    arguments = {"train_size": 60, "dev_size": 12}
    scored = "last"
    selection = "loss"

    def __init__(self, name="tiny_text", **arguments):
        super().__init__(name, **arguments)
        self.vocabularies = {"inputs": None, "targets": OpenWordVocabulary(["one", "two", "a"])}

    def prepare(self, data_dir=None, manual_dir=None):
        import dataclasses

        import numpy as np

        super().prepare()
        del self._splits["test"]
        for name in [name for name in self._splits if not self.args[f"{name}_size"]]:
            del self._splits[name]
        for name, split in self._splits.items():
            first = np.array([split.example(index)["targets"][0] for index in range(len(split))])
            self._splits[name] = dataclasses.replace(split, extras={"wrong": np.where(first == 3, 4, 3)})
        return self

    def groups(self, split):
        return {"short": split.lengths[:, 1] <= 4, "long": split.lengths[:, 1] > 4}

    def max_output_length(self, input_length):
        return input_length * 0 + 3

    def _absent(self, split):
        return f"{split} needs {split}_size above 0"

    def _pairs(self, split, size):
        import numpy as np

        rng = np.random.default_rng([size, len(split)])
        pairs = rng.integers([3, 1], [5, 4], [max(size, 1), 2])
        return [(None, np.array([first, *[5] * middle, first, 1])) for first, middle in pairs]


@hparams_sets.register("tiny")
def tiny():
    """Seconds on one core: 3 steps at most, width 16."""
    return HParams(
        model="universal_transformer",
        hidden_size=16,
        filter_size=32,
        num_heads=2,
        recurrence_type="act",
        act_type="accumulated",
        act_max_steps=3,
        batch_size=16,
        use_fixed_batch_size=True,
        learning_rate_schedule="constant",
        learning_rate_constant=0.003,
        train_steps=12,
        eval_every=5,
    )


@hparams_sets.register("tiny_class")
def tiny_class():
    """As tiny, for one class per example."""
    return dataclasses.replace(tiny(), model="universal_transformer_encoder", input_position_numbering="end")


@hparams_sets.register("tiny_text")
def tiny_text():
    """As tiny, for a language model."""
    return dataclasses.replace(tiny(), model="universal_transformer_lm")
