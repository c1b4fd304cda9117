"""Strings of symbols to strings of symbols: tensor2tensor's algorithmic problems.

What differs from tensor2tensor: the separator of two numbers is a symbol of the vocabulary (there its
id is one past the end), there is a test split, and inputs of the splits other than train do not
occur in train where that is possible.
"""

from problems.algorithmic_strings import Task
from problems.closed_vocabularies import NumberVocabulary
from problems.edit_distance import edit_distance_rate
from problems.packed import PackedSplit
from problems.packed_characters import pack_characters
from problems.problem import Problem
from problems.vocabulary import SymbolVocabulary
from ut_keras.errors import UsageError

_DIGITS = 10


class Algorithmic(Problem):
    """Strings of symbols to strings of symbols.

    Splits:
        train: lengths uniform in 1 .. `train_length`. (Two numbers, here and below: l1 digits uniform in
            1 .. half of that, l2 uniform in what a separator leaves; tensor2tensor's rule.)
        dev, test: the same lengths, other strings. Cheap, for selection and for the final score.
        long: tensor2tensor's dev split: lengths uniform in 1 .. `long_length`.
    `exact_length_split` gives inputs of exactly one length.

    Text: a line of symbols, with or without blanks between them: "314" or "3 1 4". Addition:
    "12+34", digits least significant first as in tensor2tensor (21 + 43); the answer to it is "46".
    Multiplication: "12*34". Of more than ten symbols each is a number: "3 14 1".

    Args:
        task: "identity", "reverse", "addition", "multiplication"; of numbers also "shift", "sort" and
            "reverse_nlplike" (`algorithmic_numbers.NumberTask`).
        base: number of symbols.
        train_length: longest input of train (symbols).
        long_length: longest input of long (symbols).
        sizes: {argument: number of examples} that differ from the usual ones.
        alpha: exponent of Zipf's law, of reverse_nlplike.
        train_size, dev_size, test_size, long_size: examples of a split (problem arguments).
        seed: of the generation (problem argument).
    """

    splits = ("train", "dev", "test", "long")
    default_hparams_set = "universal_transformer_algorithmic"
    free_form = False  # the edit distance is of text, and one answer is right
    arguments = {"train_size": 100_000, "dev_size": 1_000, "test_size": 1_000, "long_size": 10_000, "seed": 0}

    def __init__(self, name, task, base, train_length, long_length=400, sizes=None, alpha=0.0, **arguments):
        self.arguments = {**self.arguments, **(sizes or {})}
        super().__init__(name, **arguments)
        for split in ("train", "dev"):
            if not self.args[f"{split}_size"]:
                raise UsageError(f"{name}: argument {split}_size=0 leaves no examples")
        settings = {
            "kind": task,
            "base": base,
            "train_length": train_length,
            "long_length": long_length,
            "sizes": tuple((split, self.args[f"{split}_size"]) for split in self.splits),
            "seed": self.args["seed"],
        }
        self._of_numbers = base > _DIGITS
        if self._of_numbers:
            from problems.algorithmic_numbers import NumberTask

            self._task, vocabulary = NumberTask(**settings, alpha=alpha), NumberVocabulary(base)
        else:
            self._task = Task(**settings)
            vocabulary = SymbolVocabulary(self._task.symbols)
        if task == "sort":
            self.eval_metrics = ("edit_distance",)
        if task.startswith("reverse"):
            self.default_hparams_set = "universal_transformer_reverse"
        self.vocabularies = {"inputs": vocabulary, "targets": vocabulary}

    def exact_length_split(self, length, count, seed=0):
        """Returns `count` examples whose inputs have exactly `length` symbols (the end token not counted).

        They are a function of (problem, length, count, seed), and do not occur in train where that is possible.
        """
        examples = self._task.exact(length, count, seed)
        return PackedSplit(f"length_{length}", *(self._ids([row[i] for row in examples]) for i in (0, 1)))

    def text_scores(self, outputs, references):
        """Of sorting: the edit distance (symbols) divided by the length of the right strings, as in tensor2tensor."""
        return {"edit_distance": edit_distance_rate(outputs, references)} if self._task.kind == "sort" else {}

    def _absent(self, split):
        return f"argument {split}_size=0 leaves no examples"

    def _pack(self, root, manual_dir):
        from problems import builders

        task = self._task
        sizes = "_".join(f"{name}{size}" for name, size in task.sizes)
        name = f"{task.label}_{sizes}_seed{task.seed}"
        builder = builders.prepare(builders.UtAlgorithmic, builders.AlgorithmicConfig(name=name, task=task), root)

        def make():
            return {split: self._pack_split(builder, split) for split, size in task.sizes if size}, None

        splits, _ = self._open_or_pack(root, {"data": builder.info.full_name, "symbols": task.symbols}, make)
        return splits, self._state()

    def _pack_split(self, builder, split):
        from problems import builders

        batches = list(builders.read(builder, split))
        columns = ([text for batch in batches for text in batch[feature].tolist()] for feature in ("inputs", "targets"))
        return PackedSplit(split, *(self._ids(column) for column in columns))

    def _ids(self, strings):
        """Returns the packed ids, with end tokens, of a list of bytes."""
        if self._of_numbers:
            from problems.algorithmic_numbers import pack_numbers

            return pack_numbers(strings)
        return pack_characters(self._task.symbols, strings)
