"""A user's own package, as --usr_dir takes it: two problems that train in seconds, and hparams sets for them.

Standard library only at import, so that names can be looked up without TensorFlow.
"""

import dataclasses

from problems.problem import Problem
from problems.vocabulary import SymbolVocabulary, WordVocabulary
from ut_keras.hparams import HParams
from ut_keras.registry import hparams_sets, problems


def _packed(name, pairs):
    import numpy as np

    from problems.packed import Packed, PackedSplit

    def feature(index):
        examples = [pair[index] for pair in pairs]
        return Packed.from_tokens(np.concatenate(examples), [len(example) for example in examples])

    return PackedSplit(name, feature(0), feature(1))


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

    def encode_input(self, text):
        import numpy as np

        ids = self.vocabularies["inputs"].encode(text, self.name)
        return np.array([*ids, 1] if ids else [], np.int32)

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
