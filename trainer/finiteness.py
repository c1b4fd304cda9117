"""Whether a run may go on from what its steps have measured."""

import numpy as np

from ut_keras.errors import UserError

ALL_SKIPPED = 50  # updates left out in a row, without one that was made, after which there is no hope


def refuse_bad_steps(interval, step, skips):
    """UserError where something that was measured is not finite; called before anything is saved.

    Args:
        interval: `Interval` of the steps since the last line, which knows of those before what was left out.
        step: updates made.
        skips: updates that are not finite are left out (--on_nan=skip): a fault only where there is none but these.
    """
    bad = interval.first_bad_step(skipping=skips)
    if bad:
        raise UserError(
            f"the {bad.name} is {bad.value} at step {bad.step}; nothing has been saved since it was finite: "
            "lower learning_rate_constant, set clip_grad_norm, or leave such updates out by --on_nan=skip"
        )
    if interval.in_a_row >= ALL_SKIPPED:
        raise UserError(
            f"no update of the last {interval.in_a_row} had a finite gradient, up to step {step}: the weights do not "
            "come back from there; lower learning_rate_constant or set clip_grad_norm, in another --output_dir"
        )


def refuse_bad_weights(variables, step):
    """UserError where a weight is not finite; called before they are saved: a step's loss is of the weights before it.

    Args:
        variables: Keras variables.
        step: updates made.
    """
    for variable in variables:
        if not np.all(np.isfinite(np.asarray(variable.numpy(), np.float32))):
            raise UserError(
                f"the weights are not finite after step {step} ({variable.path}) and were not saved: lower "
                "learning_rate_constant or set clip_grad_norm"
            )
