"""How much a predicted sequence has in common with the right one: BLEU and ROUGE on token ids. Standard library only.

Formulas and corner cases as in tensor2tensor (utils/bleu_hook.py, utils/rouge.py), which takes padding for a token:
these functions look at every id that they are given, so that padded rows give its numbers and rows without padding give
what is meant. Scores are between 0 and 1.
"""

import collections
import math

ORDERS = 4  # BLEU's longest n-gram


def ngram_matches(reference, prediction):
    """Returns (matches, possible), two lists of `ORDERS` counts, of 1-grams first.

    An n-gram of the prediction is a match as often as it stands in the reference, and no more; possible are all of the
    prediction's n-grams.

    Args:
        reference, prediction: lists of hashable tokens.

    >>> ngram_matches([3, 4, 5, 1], [3, 4, 4, 1])
    ([3, 1, 0, 0], [4, 3, 2, 1])
    """
    possible = [max(len(prediction) - order, 0) for order in range(ORDERS)]
    if reference == prediction:
        return possible, possible
    matches = []
    for order in range(1, ORDERS + 1):
        known = collections.Counter(_ngrams(reference, order))
        found = collections.Counter(_ngrams(prediction, order))
        matches.append(sum(min(found[ngram], known[ngram]) for ngram in found.keys() & known.keys()))
    return matches, possible


def bleu(matches, possible, length=1, reference_length=1):
    """Returns BLEU from the counts of a whole corpus.

    The geometric mean of the four precisions, times the brevity penalty. The k-th order without any match has the
    precision 1 / (2**k * possible). An order with no possible n-gram is left out, as if its precision were 1.

    Args:
        matches, possible: sums of what `ngram_matches` gives.
        length, reference_length: tokens of the predictions and of the references, for the brevity penalty; without
            them there is none.

    Source: Papineni et al. 2002; the smoothing is that of mteval-v13a.
    """
    logarithms, halvings = [], 0
    for matched, there in zip(matches, possible, strict=True):
        if not matched:
            halvings += 1
            matched = 0.5**halvings
        logarithms.append(math.log(matched / there) if there else 0.0)
    if not any(possible) or not length:
        return 0.0
    return math.exp(sum(logarithms) / ORDERS + min(0.0, 1 - reference_length / length))


def corpus_bleu(references, predictions, brevity_penalty=True):
    """Returns BLEU of two lists of token lists, one reference each.

    >>> round(corpus_bleu([[3, 4, 5, 6, 1]], [[3, 4, 5, 1]]), 4)
    0.4976
    """
    matches, possible = [0] * ORDERS, [0] * ORDERS
    for reference, prediction in zip(references, predictions, strict=True):
        for totals, counts in zip((matches, possible), ngram_matches(reference, prediction), strict=True):
            totals[:] = map(sum, zip(totals, counts, strict=True))
    lengths = (sum(map(len, predictions)), sum(map(len, references))) if brevity_penalty else ()
    return bleu(matches, possible, *lengths)


def rouge_2(reference, prediction):
    """Returns the F1 score of the sets of 2-grams of two token lists; 0 where there are none.

    Source: Lin 2004, ROUGE-N; over sets, as in tensor2tensor.

    >>> rouge_2([3, 4, 5, 1], [3, 4, 4, 1])
    0.3333333333333333
    """
    known, found = set(_ngrams(reference, 2)), set(_ngrams(prediction, 2))
    return 2 * len(known & found) / (len(known) + len(found)) if known or found else 0.0


def rouge_l(reference, prediction):
    """Returns ROUGE-L of two token lists, from their longest common subsequence; 0 where it is empty.

    With recall R and precision P it is (1 + b^2) R P / (R + b^2 P), b = P / R: for sequences of one length, P.

    Source: Lin 2004, ROUGE-L.

    >>> rouge_l([3, 4, 5, 1], [3, 4, 4, 1])
    0.75
    """
    common = common_subsequence(reference, prediction)
    if not common:
        return 0.0
    recall, precision = common / len(reference), common / len(prediction)
    weight = (precision / recall) ** 2
    return (1 + weight) * recall * precision / (recall + weight * precision)


def common_subsequence(first, second):
    """Returns the length of the longest common subsequence of two token lists.

    A row of the usual table is one integer, whose bit i is 0 where the row grows from column i to i + 1.

    Source: Hyyro 2004, Bit-parallel LCS-length computation revisited.
    """
    places = collections.defaultdict(int)
    for place, token in enumerate(first):
        places[token] |= 1 << place
    full = (1 << len(first)) - 1
    row = full
    for token in second:
        met = row & places.get(token, 0)
        row = (row + met | row - met) & full
    return len(first) - row.bit_count()


def _ngrams(tokens, order):
    return zip(*(tokens[start:] for start in range(order)))
