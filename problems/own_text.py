"""Problems on the user's own files, line by line."""

from problems import own_files
from problems.text_problem import TextProblem


class OwnText(TextProblem):
    """One or several files per split in the folder of --manual_dir; a line of each is an example.

    Reads `train.ENDING`, `dev.ENDING` (or val, valid), and `test.ENDING` where present; each may end in .gz. A line
    ends at LF alone. All files are read, and every fault in them is found, before anything is written.

    A subclass gives `endings` and `row`.
    """

    endings = ("txt",)
    hint = ""  # what else to try where a file is missing

    def row(self, *lines, place):
        """Returns the example of a line of each file: {column: text}.

        Args:
            *lines: str, in the order of `endings`.
            place: the first file and the number of the line, for messages.
        """
        return dict(zip(self.columns, lines, strict=True))

    def _builder(self, root, manual_dir):
        from problems import builders

        self._files = own_files.find(self.name, manual_dir, self.endings, self.hint)
        name = f"{self.name}_{own_files.digest(self._files)}"
        if name in builders.prepared_config_names(builders.UtText, root):
            return self._prepare(root, name, {})
        rows = {split: self._rows(split, paths) for split, paths in self._files.items()}
        self._check_classes(rows)
        return self._prepare(root, name, rows)

    def _rows(self, split, paths):
        lines = enumerate(own_files.read(self.name, paths), 1)
        return [self.row(*line, place=self._place(split, number)) for number, line in lines]

    def _place(self, split, number):
        return f"{self._files[split][0]}: line {number}"

    def _trained_on(self, splits):
        return own_files.trained_on(splits)

    def _absent(self, split):
        files = " and ".join(f"{split}.{ending}" for ending in self.endings)
        return f"put {files} beside the other files and name their folder with --manual_dir"
