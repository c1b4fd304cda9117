"""A vocabulary that the user brings as a file: a SentencePiece model, or a list of words."""

import hashlib
import json
import pathlib
import re

from problems import textio
from problems.vocabulary import BLANKS, OpenWordVocabulary
from ut_keras.errors import UserError

_MODEL = ".model"


def read(path):
    """Returns the vocabulary in a file: subwords where its name ends in .model, else words, one a line.

    Raises:
        UserError: the file is missing or broken; see also `read_entries` and `SubwordVocabulary`.
    """
    path = pathlib.Path(path).expanduser()
    if path.name.endswith(_MODEL):
        from problems.subwords import SubwordVocabulary

        try:
            return SubwordVocabulary(path.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from None
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
    return OpenWordVocabulary(read_entries(path))


def chosen(problem, feature):
    """Returns the vocabulary that the problem's argument `vocabulary_file` names; None where it names none.

    A problem that was loaded from a run has it with it and needs the file no more.

    Args:
        problem: Problem with that argument.
        feature: "inputs" or "targets", whose vocabulary it is.
    """
    if not problem.args["vocabulary_file"]:
        return None
    return problem.saved_vocabulary(feature) or read(problem.args["vocabulary_file"])


def identity(vocabulary):
    """Returns characters that stand for the content of a vocabulary."""
    return hashlib.sha256(json.dumps(vocabulary.to_dict(), sort_keys=True).encode()).hexdigest()[:8]


def read_entries(path):
    """Returns the words of a list with one word a line, in its order.

    Raises:
        UserError: a line is blank, a word stands there twice, or blanks are in or around a word (a count after it,
            for example); the message names file, line and word. Or the list is empty.
    """
    lines = {}
    for number, word in enumerate(textio.read_lines(path), 1):
        if not word.strip(BLANKS):
            raise UserError(f"{path}: line {number} is blank; a vocabulary has one word a line")
        if re.search(f"[{BLANKS}]", word):
            raise UserError(f"{path}: line {number}: {word[:60]!r} is more than one word; a vocabulary has one a line")
        if word in lines:
            raise UserError(f"{path}: the word {word!r} is on line {lines[word]} and again on line {number}")
        lines[word] = number
    if not lines:
        raise UserError(f"{path} is empty; a vocabulary has one word a line")
    return tuple(lines)
