"""The user's own pairs of texts."""

from problems import own_files
from problems.text_pairs import TextPairs
from ut_keras.errors import UsageError


class ParallelText(TextPairs):
    """Line n of one file to line n of the other: translation, simplification, anything from text to text.

    Reads, in the folder of --manual_dir, `train.SOURCE` and `train.TARGET`, `dev.*` (or `val.*`, `valid.*`), and
    `test.*` where present; each may end in .gz. All files are read, and every fault in them is found, before anything
    is written.

    Args:
        source, target: the endings of the files (problem arguments).
        vocabulary, vocabulary_size, vocabulary_file: as of `TextProblem` (problem arguments).
    """

    arguments = {**TextPairs.arguments, "source": "source", "target": "target"}

    def __init__(self, name, **arguments):
        super().__init__(name, **arguments)
        if self.args["source"] == self.args["target"]:
            raise UsageError(
                f"{name}: arguments source and target are both {self.args['source']!r}: one file is no pair"
            )

    def _builder(self, root, manual_dir):
        from problems import builders

        endings = self.args["source"], self.args["target"]
        hint = "; --problem_args=source=en,target=de names the endings" if endings == ("source", "target") else ""
        files = own_files.find(self.name, manual_dir, endings, hint)
        name = f"pairs_{own_files.digest(files)}"
        if name in builders.prepared_config_names(builders.UtText, root):
            return self._prepare(root, name, {})
        rows = {
            split: [dict(zip(self.columns, pair, strict=True)) for pair in own_files.read(self.name, paths)]
            for split, paths in files.items()
        }
        return self._prepare(root, name, rows)

    def _trained_on(self, splits):
        return own_files.trained_on(splits)

    def _absent(self, split):
        files = " and ".join(f"{split}.{self.args[name]}" for name in ("source", "target"))
        return f"put {files} beside the other files and name their folder with --manual_dir"
