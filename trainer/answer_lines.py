"""One line of output for each answer: its text, or a JSON object with all that was asked for."""

import json
import math

from problems.vocabulary import PAD
from trainer.token_texts import source_tokens, tokens


class AnswerLines:
    """Makes the line of an answer, and counts what it had to change.

    Args:
        problem: the `Problem`.
        with_scores, with_ponder, with_hypotheses: what is in the JSON object; without any of them lines are text.

    Attributes:
        json: whether lines are JSON objects.
        broken: answers with a line feed, which as text is written as a blank: one answer is one line, whatever a
            vocabulary of bytes or subwords has spelled.
    """

    def __init__(self, problem, with_scores=False, with_ponder=False, with_hypotheses=False):
        self._problem = problem
        self._with_scores = with_scores
        self._with_ponder = with_ponder
        self._with_hypotheses = with_hypotheses
        self.json = with_scores or with_ponder or with_hypotheses
        self.broken = 0

    def answered(self, text, decoded):
        """Returns the line, without its end, of the input `text` and its `Decoded`.

        A JSON object has "input" and "output"; with scores "score" (natural logarithm of the probability) and, of a
        beam with a length penalty, "normalized_score"; with ponder times "ponder_times" and "tokens", both
        {"encoder": [L], "decoder": [N]} (of a language model {"prompt": [P], "decoder": [N]}); with hypotheses the
        list "hypotheses", best first, of objects with "output", the scores and what of the decoder was asked for.
        """
        if not self.json:
            self.broken += "\n" in decoded.text
            return decoded.text.replace("\n", " ")
        record = {"input": text, "output": decoded.text}
        if self._with_scores and decoded.hypotheses:
            record.update(_scores(decoded.hypotheses[0]))
        if self._with_ponder:
            record["ponder_times"] = {side: self._times(side, decoded) for side in decoded.ponder_times}
            record["tokens"] = {side: self._tokens(side, decoded) for side in decoded.ponder_times}
        if self._with_hypotheses:
            record["hypotheses"] = [self._hypothesis(hypothesis) for hypothesis in decoded.hypotheses]
        return json.dumps(record, ensure_ascii=False)

    def refused(self, text, reason):
        """Returns the line of an input that cannot be answered: an empty one, or an object that says why."""
        return json.dumps({"input": text, "output": "", "error": reason}, ensure_ascii=False) if self.json else ""

    def _hypothesis(self, hypothesis):
        record = {"output": hypothesis.text, **_scores(hypothesis)}
        if self._with_ponder and hypothesis.ponder_times is not None:
            record["ponder_times"] = {"decoder": _rounded(hypothesis.ponder_times, hypothesis.ids)}
            record["tokens"] = {"decoder": self._targets(hypothesis.ids)}
        return record

    def _times(self, side, decoded):
        return _rounded(decoded.ponder_times[side], decoded.ids if side == "decoder" else None)

    def _tokens(self, side, decoded):
        return self._targets(decoded.ids) if side == "decoder" else source_tokens(self._problem, decoded.inputs)

    def _targets(self, ids):
        return tokens(self._problem.vocabularies["targets"], ids)


def _scores(hypothesis):
    record = {"score": _number(hypothesis.score, 6)}
    if hypothesis.normalized_score is not None:
        record["normalized_score"] = _number(hypothesis.normalized_score, 6)
    return record


def _rounded(times, ids=None):
    """`ids`: those that were produced; tensor2tensor's stop rules may produce padding, which is no token."""
    real = times if ids is None else times[ids != PAD]
    return [_number(float(time), 4) for time in real]


def _number(value, places):
    """JSON has no infinity: None stands for what weights that are not finite give."""
    return round(value, places) if math.isfinite(value) else None
