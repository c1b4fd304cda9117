"""A classifier on the user's own labelled text."""

from problems.own_text import OwnText
from problems.vocabulary import BLANKS
from ut_keras.errors import UserError


class TextClass(OwnText):
    """Lines "text, tab, label" of `train.tsv`, `dev.tsv` (or val, valid) and, where present, `test.tsv`.

    The labels are those of train, taken as they stand: they may hold blanks. Blank lines are left out and counted; any
    other line without a text, without a label, or with not exactly one tab is an error.
    """

    target = "class"
    default_hparams_set = "universal_transformer_text_class"
    endings = ("tsv",)

    def row(self, line, *, place):
        if not line.strip(BLANKS):
            return {"inputs": "", "targets": ""}
        fields = line.split("\t")
        if len(fields) != 2:
            raise UserError(f"{self.name}: {place} has {len(fields) - 1} tabs; it needs one, between text and label")
        for what, field in zip(("text", "label"), fields, strict=True):
            if not field.strip(BLANKS):
                raise UserError(f"{self.name}: {place} has no {what} {'before' if what == 'text' else 'after'} the tab")
        return {"inputs": fields[0], "targets": fields[1]}
