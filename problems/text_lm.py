"""A language model on the user's own text."""

from problems.own_text import OwnText

_CONTINUATION = 50


class TextLm(OwnText):
    """Lines of `train.txt`, `dev.txt` (or val, valid) and, where present, `test.txt`: a language model of lines.

    A line is an example, with an end token after it. Blank lines are left out of every split and counted.
    """

    columns = ("targets",)
    selection = "loss"
    default_hparams_set = "universal_transformer_text_lm"

    def max_output_length(self, input_length):
        return input_length + _CONTINUATION
