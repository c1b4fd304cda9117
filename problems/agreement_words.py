"""What the training share of the agreement data teaches about words: a vocabulary, and the forms of verbs."""

import collections

from problems import verb_forms
from problems.vocabulary import OpenWordVocabulary


class TrainedWords:
    """The words of the training share.

    The form of the other number of a verb is looked for among the words seen as a verb of that number, then among all
    words of the vocabulary, by the spelling rules of verb_forms.py: the pairs are the data's own.

    Args:
        vocabulary: OpenWordVocabulary.
        verbs: {"VBZ", "VBP": set of the words seen as a verb of that number}; None: not known.
    """

    def __init__(self, vocabulary, verbs=None):
        self.vocabulary = vocabulary
        self._verbs = verbs or {verb_forms.SINGULAR: (), verb_forms.PLURAL: ()}

    @classmethod
    def count(cls, rows, min_count):
        """Returns the words of `rows` (context, verb, number) that occur `min_count` times or more, frequent first."""
        counts, verbs = collections.Counter(), {verb_forms.SINGULAR: set(), verb_forms.PLURAL: set()}
        for context, verb, number in rows:
            counts.update(context.split(" "))
            counts[verb] += 1
            verbs[number].add(verb)
        common = [word for word, count in counts.items() if word and count >= min_count]
        return cls(OpenWordVocabulary(sorted(common, key=lambda word: (-counts[word], word))), verbs)

    def alternative(self, verb, number, wrong):
        """Returns the id of the verb's form of the other number; 0 where it or the verb is not in the vocabulary.

        Args:
            verb: the right form.
            number: its number, VBZ or VBP; "" where it is not known.
            wrong: the other form where the data give it, else "".
        """
        if not wrong and number:
            other = verb_forms.PLURAL if number == verb_forms.SINGULAR else verb_forms.SINGULAR
            wrong = verb_forms.other_form(verb, number, self._verbs[other], self.vocabulary)
        if not wrong or verb not in self.vocabulary or wrong not in self.vocabulary:
            return 0
        return self.vocabulary.id_of(wrong)
