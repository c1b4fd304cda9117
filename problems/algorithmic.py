"""Copying, reversing and adding strings of symbols: tensor2tensor's algorithmic_{identity,reverse,addition}_*40.

What differs from tensor2tensor: the separator of addition is a symbol of the vocabulary (there its
id is one past the end), there is a test split, and inputs of the splits other than train do not
occur in train where that is possible.
"""

import numpy as np

from problems.algorithmic_strings import Task
from problems.packed import Packed, PackedSplit
from problems.problem import Problem, with_end
from problems.vocabulary import EOS, NUM_RESERVED, SymbolVocabulary
from ut_keras.errors import UsageError

_LONG_LENGTH = 400


class Algorithmic(Problem):
    """Strings of symbols to strings of symbols.

    Splits:
        train: lengths uniform in 1 .. `train_length`. (Addition, here and below: l1 digits uniform in
            1 .. half of that, l2 uniform in what a separator leaves; tensor2tensor's rule.)
        dev, test: the same lengths, other strings. Cheap, for selection and for the final score.
        long: tensor2tensor's dev split: lengths uniform in 1 .. 400.
    `exact_length_split` gives inputs of exactly one length.

    Text: a line of symbols, with or without blanks between them: "314" or "3 1 4". Addition:
    "12+34", digits least significant first as in tensor2tensor (21 + 43); the answer to it is "46".

    Args:
        task: "identity", "reverse" or "addition".
        base: number of symbols, 2 to 10.
        train_length: longest input of train (symbols).
        train_size, dev_size, test_size, long_size: examples of a split (problem arguments).
        seed: of the generation (problem argument).
    """

    splits = ("train", "dev", "test", "long")
    default_hparams_set = "universal_transformer_algorithmic"
    arguments = {"train_size": 100_000, "dev_size": 1_000, "test_size": 1_000, "long_size": 10_000, "seed": 0}

    def __init__(self, name, task, base, train_length, **arguments):
        super().__init__(name, **arguments)
        for split in ("train", "dev"):
            if not self.args[f"{split}_size"]:
                raise UsageError(f"{name}: argument {split}_size=0 leaves no examples")
        self._task = Task(
            kind=task,
            base=base,
            train_length=train_length,
            long_length=_LONG_LENGTH,
            sizes=tuple((split, self.args[f"{split}_size"]) for split in self.splits),
            seed=self.args["seed"],
        )
        if task == "reverse":
            self.default_hparams_set = "universal_transformer_reverse"
        vocabulary = SymbolVocabulary(self._task.symbols)
        self.vocabularies = {"inputs": vocabulary, "targets": vocabulary}

    def exact_length_split(self, length, count, seed=0):
        """Returns `count` examples whose inputs have exactly `length` symbols (the end token not counted).

        They are a function of (problem, length, count, seed), and do not occur in train where that is possible.
        """
        examples = self._task.exact(length, count, seed)
        return PackedSplit(f"length_{length}", *(self._ids([row[i] for row in examples]) for i in (0, 1)))

    def encode_input(self, text):
        ids = self.vocabularies["inputs"].encode(text, self.name)
        return np.array(with_end(ids) if ids else [], np.int32)

    def text_encoder(self):
        from problems import text_graph

        return text_graph.SymbolEncoder(self.vocabularies["inputs"])

    def _pack(self, root, manual_dir):
        from problems import builders

        task = self._task
        sizes = "_".join(f"{name}{size}" for name, size in task.sizes)
        name = f"{task.kind}_base{task.base}_length{task.train_length}_{task.long_length}_{sizes}_seed{task.seed}"
        builder = builders.prepare(builders.UtAlgorithmic, builders.AlgorithmicConfig(name=name, task=task), root)

        def make():
            return {split: self._pack_split(builder, split) for split in self.splits}, None

        splits, _ = self._open_or_pack(root, {"data": builder.info.full_name, "symbols": task.symbols}, make)
        return splits, self._state()

    def _pack_split(self, builder, split):
        from problems import builders

        batches = list(builders.read(builder, split)) if builder.info.splits[split].num_examples else []
        columns = ([text for batch in batches for text in batch[feature].tolist()] for feature in ("inputs", "targets"))
        return PackedSplit(split, *(self._ids(column) for column in columns))

    def _ids(self, strings):
        """Returns the packed ids, with end tokens, of a list of bytes."""
        table = np.zeros(256, np.uint8)
        table[np.frombuffer(self._task.symbols.encode(), np.uint8)] = np.arange(len(self._task.symbols)) + NUM_RESERVED
        table[ord("\n")] = EOS
        text = b"".join(string + b"\n" for string in strings)
        return Packed.from_tokens(table[np.frombuffer(text, np.uint8)], [len(string) + 1 for string in strings])
