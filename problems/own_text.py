"""Problems on one file of the user's own text per split."""

from problems import own_files
from problems.text_problem import TextProblem


class OwnText(TextProblem):
    """One file per split in the folder of --manual_dir; a line is an example.

    Reads `train.ENDING`, `dev.ENDING` (or val, valid), and `test.ENDING` where present; each may end in .gz. A line
    ends at LF alone. All files are read, and every fault in them is found, before anything is written.

    A subclass gives `ending` and `row`.
    """

    ending = "txt"

    def row(self, line, place):
        """Returns the example of a line: {column: text}.

        Args:
            line: str.
            place: the file and the number of the line, for messages.
        """
        return {"targets": line}

    def _builder(self, root, manual_dir):
        from problems import builders

        self._files = {split: paths[0] for split, paths in own_files.find(self.name, manual_dir, [self.ending]).items()}
        name = f"{self.name}_{own_files.digest({split: [path] for split, path in self._files.items()})}"
        if name in builders.prepared_config_names(builders.UtText, root):
            return self._prepare(root, name, {})
        rows = {split: self._rows(split, path) for split, path in self._files.items()}
        self._check_classes(rows)
        return self._prepare(root, name, rows)

    def _rows(self, split, path):
        lines = own_files.read(self.name, [path])
        return [self.row(line, self._place(split, number)) for number, (line,) in enumerate(lines, 1)]

    def _place(self, split, number):
        return f"{self._files[split]}: line {number}"

    def _trained_on(self, splits):
        return own_files.trained_on(splits)

    def _absent(self, split):
        return f"put {split}.{self.ending} beside the other files and name their folder with --manual_dir"
