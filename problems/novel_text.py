"""A novel's text in the form of LAMBADA's: lower-cased words with blanks between them, sentences, passages.

LAMBADA's files were made with a Penn Treebank tokeniser; `words` follows what is seen in them, and leaves
text that is in this form already as it is. Standard library only.
"""

import re

# The part of a passage before its last sentence has at least this many words (Paperno et al. 2016, section 3.1).
CONTEXT_WORDS = 50

_REPLACED = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": " `` ",
        "\u201d": " '' ",
        "\u2014": " -- ",
        "\u2013": " -- ",
        "\u2026": " ... ",
        "(": " -lrb- ",
        ")": " -rrb- ",
        "[": " -lsb- ",
        "]": " -rsb- ",
        "{": " -lcb- ",
        "}": " -rcb- ",
        "_": "",  # marks italics in plain text
    }
)
_BRACKETS = "-lrb- -rrb- -lsb- -rsb- -lcb- -rcb-".split()
_ABBREVIATIONS = (
    "mr mrs ms dr st mt jr sr prof rev hon lt capt col gen sgt maj gov sen rep messrs mme mlle esq etc vs inc ltd co"
).split()
# A double quote begins where something follows it at once and nothing but an opening stands right before it.
_OPENING_DOUBLE = re.compile(r"(?<![^\s`'-])\"(?=\S)")
_OPENING_SINGLE = re.compile(r"(?<![^\s`-])'(?=\w)(?!(?:s|m|d|re|ve|ll|em|cause|til|n|\d\ds?)\b)")
_SUFFIX = re.compile(r"(.*\w)(n't|'(?:s|m|d|re|ve|ll))")
_WORD = re.compile(
    rf"""
      {"|".join(_BRACKETS)}
    | ``|''
    | '(?:s|m|d|re|ve|ll|em|cause|til|n|\d\ds?)\b
    | \b(?:{"|".join(_ABBREVIATIONS)})\.
    | \b(?:[a-z]\.){{2,}} | \b[a-hj-z]\.(?=\s)       # u.s., p.m.; an initial (i. ends a sentence)
    | \d+(?:[.,:]\d+)+
    | \w+(?:['&.@/-]\w+)*
    | \.{{2,}} | -{{2,}} | [!?]+ | \*+
    | \S
    """,
    re.VERBOSE,
)
_TWO_WORDS = {
    "cannot": ("can", "not"),
    "gonna": ("gon", "na"),
    "wanna": ("wan", "na"),
    "gotta": ("got", "ta"),
    "gimme": ("gim", "me"),
    "lemme": ("lem", "me"),
}
_CLOSING = ("''", "'", "-rrb-")
_NO_TARGET = re.compile(r"n't|'.*|[\W_]+|-[lr][rsc]b-")


def words(text):
    r"""Returns the words of a paragraph as LAMBADA writes them.

    Lower case; quotes are `` '' ` and '; brackets are -lrb- -rrb- and so on; a dash is --; punctuation stands alone,
    but for the period of an abbreviation; contractions are two words. Marks of italics (_) are left out.

    >>> " ".join(words('"I don\'t know," said Mr. Fox, "we\'ll see..."'))
    "`` i do n't know , '' said mr. fox , `` we 'll see ... ''"
    """
    text = _OPENING_DOUBLE.sub(" `` ", text.translate(_REPLACED).lower()).replace('"', " '' ")
    found = []
    for word in _WORD.findall(_OPENING_SINGLE.sub(" ` ", text)):
        found += _parts(word)
    return found


def sentences(paragraph):
    """Yields the sentences of the words of a paragraph; closing quotes and brackets belong to the sentence before.

    >>> [len(sentence) for sentence in sentences("`` no ! '' he said . so be it".split())]
    [4, 3, 3]
    """
    sentence, ended = [], False
    for word in paragraph:
        if ended and word not in _CLOSING:
            yield sentence
            sentence, ended = [], False
        sentence.append(word)
        ended = ended or word == "." or not word.strip("!?")
    if sentence:
        yield sentence


def paragraphs(lines):
    """Yields the paragraphs of hard-wrapped lines, each as one line; blank lines are between them."""
    paragraph = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line.strip())
        elif paragraph:
            yield " ".join(paragraph)
            paragraph = []


def passages(found):
    """Yields passages that follow each other without overlap, lists of words.

    Each has LAMBADA's form: at least `CONTEXT_WORDS` words of whole sentences, and one sentence more, whose last word
    ends it, as the word to be predicted does: what is behind it (a period, a quote) is left out. The last passage may
    be shorter; one of a single word is none.

    Args:
        found: iterable of sentences, each a list of words.
    """
    passage, full = [], False
    for sentence in found:
        passage += sentence
        if full:
            yield from _trimmed(passage)
            passage = []
        full = len(passage) >= CONTEXT_WORDS
    yield from _trimmed(passage)


def windows(found):
    """Yields a passage (see `passages`) for every sentence: itself, and as many before it as make its context.

    Args:
        found: iterable of sentences, each a list of words.
    """
    context = []
    for sentence in found:
        yield from _trimmed(sum(context, []) + sentence)
        context.append(sentence)
        while sum(map(len, context[1:])) >= CONTEXT_WORDS:
            context.pop(0)


def _trimmed(passage):
    while passage and _NO_TARGET.fullmatch(passage[-1]):
        passage = passage[:-1]
    if len(passage) > 1:
        yield passage


def _parts(word):
    if word in _TWO_WORDS:
        return _TWO_WORDS[word]
    if word.startswith("..") and not word.strip("."):
        return ("...",)
    if word.startswith("--") and not word.strip("-"):
        return ("--",)
    endings = []
    while match := _SUFFIX.fullmatch(word):
        word, ending = match.groups()
        endings.insert(0, ending)
    return (word, *endings)
