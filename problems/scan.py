"""SCAN: commands in a small language to the actions that they stand for."""

import functools

from problems import scan_files
from problems.packed import PackedSplit, Rows
from problems.problem import Problem, with_end
from problems.vocabulary import WordVocabulary
from ut_keras.errors import UsageError, UserError


class Scan(Problem):
    """A command ("jump twice and walk") to its actions ("I_JUMP I_JUMP I_WALK"); the score is exact sequence accuracy.

    The test split is the release's own. The dev split is a share of the release's training commands and so of the
    same distribution as train: it chooses a checkpoint, and says nothing of the generalisation that a split tests.

    Words are a closed list on both sides, known from the start; any other word is an error in `encode_input`. An
    answer may have all of the language's 48 actions, however short its command is.

    Args:
        split: the release's name of its split: "simple", "length", "addprim_jump", ...
        dev_percent: share of the training commands in the dev split (problem argument).
        seed: which commands these are (problem argument).

    Source: Lake and Baroni 2018, arXiv:1711.00350; template and filler splits: Loula, Baroni and Lake 2018,
    arXiv:1807.07545.
    """

    default_hparams_set = "universal_transformer_scan"
    arguments = {"dev_percent": 5, "seed": 0}

    def __init__(self, name, split, **arguments):
        super().__init__(name, **arguments)
        if not 1 <= self.args["dev_percent"] <= 90:
            raise UsageError(f"{name}: argument dev_percent={self.args['dev_percent']} is not between 1 and 90")
        self._split = split
        self.vocabularies = {
            "inputs": WordVocabulary(scan_files.WORDS),
            "targets": WordVocabulary(scan_files.ACTIONS),
        }

    def max_output_length(self, input_length):
        return input_length * 0 + scan_files.MOST_ACTIONS + 1

    def _pack(self, root, manual_dir):
        from problems import builders

        try:
            builder = self._prepare(root, manual_dir)
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from None

        def make():
            columns = list(self.vocabularies)
            rows = {split: builders.rows(builder, split, columns) for split in self.splits}
            return {split: self._pack_split(split, pairs) for split, pairs in rows.items()}, None

        splits, _ = self._open_or_pack(root, {"data": builder.info.full_name}, make)
        return splits, {**self._state(), "data_name": builder.builder_config.name}

    def _prepare(self, root, manual_dir):
        """Returns the prepared builder: of --manual_dir, of the run, of the shipped files, or of a download."""
        from problems import builders

        # In the order of `read_splits`.
        settings = (self._split, self.args["dev_percent"], self.args["seed"])
        name = "scan_{}_dev{}_seed{}".format(*settings)
        columns = {"inputs": str, "targets": str}
        used = self._data_name if self._loaded else None
        by_hand = manual_dir is not None or "_manual_" in (used or "")
        if self._split == "simple" and not by_hand:
            rows = functools.cache(lambda: scan_files.read_splits(scan_files.shipped(), *settings))
            makers = {split: lambda split=split: rows()[split] for split in self.splits}
            return builders.prepare_text(root, f"{name}_shipped", columns, makers)

        def read(source):
            return scan_files.read_splits(source, *settings)

        official = scan_files.official(self._split)
        return builders.prepare_official(root, name, columns, read, official, manual_dir, used)

    def _pack_split(self, name, pairs):
        sides = [(vocabulary, Rows(vocabulary.size)) for vocabulary in self.vocabularies.values()]
        for pair in pairs:
            for (vocabulary, rows), text in zip(sides, pair, strict=True):
                rows.add(with_end(vocabulary.encode(text, self.name)))
        return PackedSplit(name, *(rows.packed() for _, rows in sides))
