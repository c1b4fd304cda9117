"""The user's own pairs of texts."""

from problems.own_text import OwnText
from problems.text_pairs import TextPairs
from ut_keras.errors import UsageError


class ParallelText(TextPairs, OwnText):
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

    @property
    def endings(self):
        return self.args["source"], self.args["target"]

    @property
    def hint(self):
        unnamed = self.endings == ("source", "target")
        return "; --problem_args=source=en,target=de names the endings" if unnamed else ""
