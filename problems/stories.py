"""The text form of a story with a question: one line of sentences, the question last. Standard library only.

    Mary moved to the bathroom. John went to the hallway. Where is Mary?

A sentence ends after each of . ? ! and at the end of the line; upper case becomes lower case
(ASCII), other punctuation becomes a blank, and a sentence without words is no sentence. Its twin on
tensors is text_graph.StoryEncoder.
"""

import re

from problems.vocabulary import BLANKS

SENTENCE_ENDS = ".?!"
PUNCTUATION = "\"#$%&'()*+,-/:;<=>@[\\]^_`{|}~"

_UPPER_TO_LOWER = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_TABLE = {**_UPPER_TO_LOWER, **{ord(mark): " " for mark in PUNCTUATION + BLANKS}}


def sentences(text):
    """Returns the sentences of a line, each a list of words.

    >>> sentences("Mary moved to the bathroom.  Where is Mary?")
    [['mary', 'moved', 'to', 'the', 'bathroom'], ['where', 'is', 'mary']]
    """
    parts = re.split(f"[{SENTENCE_ENDS}]", text.translate(_TABLE))
    # Split at the blank alone: str.split() would also split at blanks that the graph does not know.
    split = ([word for word in part.split(" ") if word] for part in parts)
    return [words for words in split if words]
