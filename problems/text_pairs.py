"""Pairs of texts, one to be made from the other: translation and what is like it."""

from problems.text_problem import TextProblem

_EXTRA_LENGTH = 50


class TextPairs(TextProblem):
    """A source text and a target text, in a vocabulary of both. The best checkpoint is the one of least loss.

    An answer may have 50 ids more than its source. It is scored by sacrebleu's BLEU and chrF.
    """

    selection = "loss"
    default_hparams_set = "universal_transformer_text_pairs"

    def max_output_length(self, input_length):
        return input_length + _EXTRA_LENGTH

    def text_scores(self, outputs, references):
        """Returns sacrebleu's BLEU and chrF of detokenised text, with their signatures."""
        import sacrebleu

        scores = {}
        for name, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF())):
            scores[name] = metric.corpus_score(outputs, [references]).score
            scores[f"{name}_signature"] = str(metric.get_signature())
        return scores
