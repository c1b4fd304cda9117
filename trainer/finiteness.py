"""Whether a run may go on from what its steps have measured."""

from ut_keras.errors import UserError

ALL_SKIPPED = 50  # updates left out in a row, without one that was made, after which there is no hope


def refuse_bad_steps(interval, step, skips):
    """UserError where something that was measured is not finite; called before anything is saved.

    Args:
        interval: `Interval` of the steps since the last line.
        step: updates made.
        skips: updates that are not finite are left out (--on_nan=skip): a fault only where there is none but these.
    """
    bad = interval.first_bad_step(skipping=skips)
    if bad:
        raise UserError(
            f"the {bad.name} is {bad.value} at step {bad.step}; nothing has been saved since it was finite: "
            "lower learning_rate_constant, set clip_grad_norm, or leave such updates out by --on_nan=skip"
        )
    if interval.skipped == len(interval) >= ALL_SKIPPED:
        raise UserError(
            f"no update of the last {len(interval)} had a finite gradient, up to step {step}; the weights are those "
            "before: lower learning_rate_constant or set clip_grad_norm"
        )
