"""The text of the positions of an input or an answer, as it is; `token_names` has what a person sees of it."""

import numpy as np

from problems.vocabulary import EOS, UNKNOWN

END = "<end>"


def source_tokens(problem, ids):
    """Returns a name for each position of an input: its symbol, or its sentence where inputs are sentences.

    Args:
        problem: the `Problem`.
        ids: [L], or [S, W] of sentences; of a language model's prompt [P].
    """
    vocabulary = problem.vocabularies["inputs"] or problem.vocabularies["targets"]
    if np.ndim(ids) == 2:
        return [vocabulary.decode(row) for row in ids if np.any(row)]
    return tokens(vocabulary, ids)


def tokens(vocabulary, ids):
    """Returns the text of each id but padding.

    The end token, which has none, is called "<end>"; part of a character is shown as its byte.
    """
    return [_name(vocabulary, int(id_)) for id_ in ids if id_]


def _name(vocabulary, id_):
    if id_ == EOS:
        return END
    if id_ == vocabulary.unknown:
        return UNKNOWN
    text = vocabulary.decode([id_])
    return text if "\ufffd" not in text else "".join(vocabulary.decode_tokens([id_])) or text
