"""Whether a run has stopped getting better: `--early_stopping`. Standard library only."""

from typing import NamedTuple

from trainer.best import best_values, merit


class Standing(NamedTuple):
    """Where a run stands: the step of its best evaluation, and how many later ones were not better."""

    best_step: int
    since: int


class EarlyStopping:
    """Ends training after `patience` evaluations in a row that are not better than the best before them.

    What is better is what chooses the best checkpoint, `Problem.selection`; of equals the later is not better here, so
    that a run which answers everything right comes to an end. It is a function of the run's records alone: a run that
    was killed and goes on ends at the same step.

    Args:
        patience: number of evaluations, 1 or more.
    """

    def __init__(self, patience):
        self._patience = patience

    def check(self, run, log):
        """Returns whether training is over, and says so then.

        Args:
            run: `RunDir`, its metrics.jsonl written up to the step that training has reached.
            log: `Progress`.
        """
        records = evaluations(run)
        if not records:
            return False
        standing = standing_of(records, run.problem.selection)
        if standing.since < self._patience:
            return False
        log.say(
            f"{run.path} is finished early, at step {records[-1]['step']}: since step {standing.best_step} no "
            f"evaluation was better, {standing.since} in all (--early_stopping={self._patience})"
        )
        return True


def evaluations(run):
    """Returns the evaluations of a run as dicts, in the order of their steps.

    They are lines of metrics.jsonl; where that has lost the best one, it is best.json.
    """
    found = {line["step"]: line for line in run.evaluations()}
    best = best_values(run)
    if best and found and best["step"] < max(found):  # a later one is of updates that are still to be made again
        found.setdefault(best["step"], best)
    return [found[step] for step in sorted(found)]


def standing_of(records, selection):
    """Returns the `Standing` after `records`, evaluations in the order of their steps; at least one.

    Args:
        selection: "accuracy" or "loss" (`Problem.selection`).
    """
    best, *others = records
    since = 0
    for record in others:
        if merit(record, selection) > merit(best, selection):
            best, since = record, 0
        else:
            since += 1
    return Standing(best["step"], since)
