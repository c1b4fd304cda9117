"""Whether two ways to an answer give the same: the same text, or another of the same score."""

TIE = 1e-5


class SameAnswers:
    """Counts comparisons.

    Attributes:
        identical: answers of the same text.
        ties: other texts whose scores differ by at most 1e-5: two hypotheses of equal probability.
        different: the rest.
        largest_difference: between the scores of identical texts.
        examples: the first few that are different, (line, (text, score), (text, score)).
    """

    def __init__(self):
        self.identical = self.ties = self.different = 0
        self.largest_difference = 0.0
        self.examples = []

    def add(self, line, one, other):
        """Compares two answers to a line, each (text, score)."""
        apart = abs(one[1] - other[1])
        if one[0] == other[0]:
            self.identical += 1
            self.largest_difference = max(self.largest_difference, apart)
        elif apart <= TIE:
            self.ties += 1
        else:
            self.different += 1
            self.examples = [*self.examples, (line, one, other)][:3]

    def summary(self):
        """Returns the counts, for JSON."""
        return {
            "identical": self.identical,
            "ties": self.ties,
            "different": self.different,
            "largest_score_difference": float(f"{self.largest_difference:.2g}"),
        }
