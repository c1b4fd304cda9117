"""LAMBADA's published files, and novels of one's own in their form.

Prepared, a passage is one row, and so are a whole novel (its sentences, one a line) and the list of words. Text is
lower-cased words with blanks between them, as published.
"""

import glob
import hashlib
import io
import lzma
import pathlib
import tarfile

from problems import novel_text, textio
from problems.sources import BROKEN, Official
from problems.vocabulary import split_words
from ut_keras.errors import UserError

VOCABULARY = "lambada-vocab-2.txt"
NOVELS = "train-novels.tar"
PASSAGES = {
    "dev": "lambada_development_plain_text.txt",
    "test": "lambada_test_plain_text.txt",
    "control": "lambada_control_test_data_plain_text.txt",
}
# The beginning of the control file is taken under a name of its own, where the whole one is not there.
_PART = "lambada_control_test_data_plain_text.first2500.txt"
_NO_WORDS = ("<s>", "</s>")
OFFICIAL = Official(
    url="https://zenodo.org/record/2630551/files/lambada-dataset.tar.gz",
    file="lambada-dataset.tar.gz",
    members=(VOCABULARY, *PASSAGES.values(), _PART, NOVELS),
    folder="train-novels",  # what the tar file of the novels holds
)


def read_splits(source):
    """Returns {split: iterable of {"text": str}} of what a `Source` has, "vocabulary" among them.

    Raises:
        UserError: there is no vocabulary, or a file is not what it should be.
    """
    splits = {"vocabulary": read_vocabulary(source)}
    for split, name in PASSAGES.items():
        present = next((other for other in (name, _PART) if source.has(other)), None)
        if present and (split == "control" or present == name):
            splits[split] = read_passages(source, present)
    if not splits.keys() & PASSAGES.keys():
        raise UserError(f"{source.path} has none of {', '.join(PASSAGES.values())}")
    novels = _novels(source)
    if novels:
        splits["train"] = novels
    return splits


def read_vocabulary(source):
    """Returns the one row of the list of `word<TAB>frequency`: words, one a line, the most frequent first.

    <s> and </s> are no words.
    """
    rows, lines = [], {}
    for number, line in enumerate(source.lines(VOCABULARY), 1):
        word, _, frequency = line.partition("\t")
        if not split_words(word) == [word] or textio.natural(frequency) is None:
            raise UserError(f"{source.path}: {VOCABULARY}: line {number} is not word, tab, frequency: {line[:60]!r}")
        if lines.setdefault(word, number) != number:
            raise UserError(f"{source.path}: {VOCABULARY}: {word!r} stands in lines {lines[word]} and {number}")
        if word not in _NO_WORDS:
            rows.append((int(frequency), word))
    if not rows:
        raise UserError(f"{source.path}: {VOCABULARY} holds no word")
    rows.sort(key=lambda row: -row[0])
    return [{"text": "\n".join(word for _, word in rows)}]


def read_passages(source, name):
    """Returns the rows of a file with one passage a line, whose last word is the one to be predicted."""
    rows = []
    for number, line in enumerate(source.lines(name), 1):
        if len(split_words(line)) < 2:
            raise UserError(f"{source.path}: {name}: line {number} is no passage of two words or more: {line[:60]!r}")
        rows.append({"text": line})
    if not rows:
        raise UserError(f"{source.path}: {name} is empty")
    return rows


def own_novels(pattern):
    """Returns the paths of the files that `pattern` names, sorted.

    Args:
        pattern: a path with the wildcards *, ?, [] and **; ~ is the home directory.

    Raises:
        UserError: it names no file.
    """
    paths = glob.glob(str(pathlib.Path(pattern).expanduser()), recursive=True)
    files = [path for path in map(pathlib.Path, sorted(paths)) if path.is_file()]
    if not files:
        raise UserError(f"train_text={pattern} names no file")
    return files


def digest(paths):
    """Returns eight characters that stand for the content of the files, in their order."""
    total = hashlib.sha256()
    for path in paths:
        total.update(textio.digest(path))
    return total.hexdigest()[:8]


def read_own_novels(paths):
    """Yields the row of each novel of one's own, in LAMBADA's form (see novel_text.py).

    Args:
        paths: UTF-8 text (.gz and .xz accepted), lines wrapped anywhere, blank lines between paragraphs.

    Raises:
        UserError: a file holds no word or is not UTF-8 text.
    """
    for path in paths:
        found = []
        for paragraph in novel_text.paragraphs(_own_lines(path)):
            found += novel_text.sentences(novel_text.words(paragraph))
        if not found:
            raise UserError(f"{path} holds no words")
        yield {"text": "\n".join(" ".join(sentence) for sentence in found)}


def _novels(source):
    """Returns an iterable of the rows of the archive's novels; None where there are none."""
    if source.has(NOVELS):
        return _novels_of_tar(source)
    names = [name for name in source.below(OFFICIAL.folder) if ".txt" in name]
    return ({"text": "\n".join(source.lines(name))} for name in names) if names else None


def _novels_of_tar(source):
    try:
        with tarfile.open(fileobj=io.BytesIO(source.read(NOVELS))) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".txt"):
                    name = f"{source.path}: {NOVELS}: {member.name}"
                    yield {"text": "\n".join(textio.read_lines(archive.extractfile(member), name))}
    except BROKEN as error:
        reason = str(error).split("\n")[0]
        raise UserError(f"{source.path}: {NOVELS} is not a whole archive: {reason}") from None


def _own_lines(path):
    if path.suffix != ".xz":
        return list(textio.read_lines(path))
    try:
        with lzma.open(path) as stream:
            return list(textio.read_lines(stream, str(path)))
    except (lzma.LZMAError, EOFError) as error:
        raise UserError(f"{path}: broken xz file: {error}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
