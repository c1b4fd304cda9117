"""A vocabulary that the user brings as a file: a SentencePiece model, a file of tensor2tensor's, or a list of words."""

import hashlib
import json
import pathlib
import re

from problems import textio
from problems.t2t_subwords import RESERVED, T2tSubwordVocabulary
from problems.t2t_words import T2tWordVocabulary
from problems.vocabulary import BLANKS, NUM_RESERVED, OpenWordVocabulary
from ut_keras.errors import UserError

_MODEL = ".model"
_T2T_SUBWORDS = ".subwords"


def read(path):
    """Returns the vocabulary in a file: that of SentencePiece where its name ends in .model, else words, one a line.

    A file whose first two lines are <pad> and <EOS> is tensor2tensor's: subwords if these are in quotes or end in _,
    else words.

    Raises:
        UserError: the file is missing or broken; see also `read_entries` and the vocabularies.
    """
    path = pathlib.Path(path).expanduser()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        if path.name.endswith(_MODEL):
            from problems.subwords import SubwordVocabulary

            return SubwordVocabulary(content)
        found = _of_tensor2tensor(content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if found is None and path.name.endswith(_T2T_SUBWORDS):
        raise UserError(f"{path} is no file of tensor2tensor's: its first two lines are not {_T2T_LINES}")
    return found or OpenWordVocabulary(read_entries(path))


_T2T_LINES = " and ".join(f"{plain} (or {ended})" for plain, ended in RESERVED)


def _of_tensor2tensor(content):
    """Returns the vocabulary in the content of a file of tensor2tensor's, None where it is another's.

    Lines are read as T2T reads them: without any carriage return, blanks at their end and one pair of quotes.
    """
    try:
        lines = content.decode("utf-8").replace("\r", "").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        return None
    entries = [line.rstrip() for line in lines]
    quoted = [entry[:1] == entry[-1:] and entry[:1] in ("'", '"') for entry in entries]
    entries = [entry[1:-1] if inside else entry for entry, inside in zip(entries, quoted, strict=True)]
    first = entries[:NUM_RESERVED]
    if len(first) < NUM_RESERVED or any(entry not in names for entry, names in zip(first, RESERVED, strict=True)):
        return None
    if quoted[0] or first[0].endswith("_"):
        return T2tSubwordVocabulary(entries[NUM_RESERVED:])
    return T2tWordVocabulary([line.strip() for line in lines[NUM_RESERVED:]])


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
