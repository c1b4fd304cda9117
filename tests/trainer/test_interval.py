"""What training steps measured, added up: the same numbers however the steps were cut into calls and processes."""

import json

import numpy as np
import pytest
import tensorflow as tf

from trainer.interval import BadStep, Interval

INF, NAN = float("inf"), float("nan")


def measured(n=1, **changes):
    """Returns what one call of the training function with n equal steps gives; `changes`: [n] values."""
    values = {
        "loss": [1.0] * n,
        "gradient_norm": [3.0] * n,
        "learning_rate": [0.1] * n,
        "applied": [1.0] * n,
        "cross_entropy": [20.0] * n,
        "right": [5.0] * n,
        "tokens": [10.0] * n,
        "sequence_right": [1.0] * n,
        "sequences": [4.0] * n,
        "examples": [4.0] * n,
        "ponder_time/encoder": [6.0] * n,
        "positions/encoder": [4.0] * n,
        "ponder_max/encoder": [2.0] * n,
        "ponder_histogram/encoder": [[0.0, 2.0, 2.0]] * n,
        "halting_probability/encoder": [[3.0, 4.0]] * n,
    }
    return {name: tf.constant(value, tf.float32) for name, value in (values | changes).items()}


def without_rates(metrics):
    return {name: value for name, value in metrics.items() if not name.endswith("_per_second")}


def random_steps(count):
    """Returns what `count` single steps measured, numbers of so many sizes that their sum depends on their order."""
    draw = np.random.default_rng(5)

    def numbers(shape):
        return tf.constant(draw.random(shape) * 10.0 ** draw.integers(-9, 9, shape), tf.float32)

    return [{name: numbers(value.shape) for name, value in measured().items()} for _ in range(count)]


def joined(steps):
    return {name: tf.concat([step[name] for step in steps], 0) for name in steps[0]}


def test_counts_are_added_up_before_anything_is_divided():
    interval = Interval()
    interval.add(1, measured(loss=[1.0], tokens=[10.0], right=[5.0]))
    interval.add(
        2,
        measured(
            2,
            loss=[3.0, 5.0],
            tokens=[30.0, 40.0],
            right=[25.0, 40.0],
            cross_entropy=[10.0, 10.0],
            sequence_right=[0.0, 4.0],
            sequences=[2.0, 4.0],
            learning_rate=[0.2, 0.3],
        ),
    )
    metrics = interval.metrics()
    assert len(interval) == 3
    assert metrics["train/loss"] == 3.0
    assert metrics["train/cross_entropy"] == 0.5
    assert metrics["train/perplexity"] == pytest.approx(1.6487212707)
    assert metrics["train/accuracy"] == 0.875
    assert metrics["train/sequence_accuracy"] == 0.5
    assert metrics["train/learning_rate"] == pytest.approx(0.3)
    assert metrics["train/gradient_norm"] == 3.0
    assert "train/skipped" not in metrics


def test_ponder_time_is_over_positions_and_its_maximum_over_steps():
    interval = Interval()
    interval.add(1, measured())
    interval.add(
        2,
        measured(
            **{
                "ponder_time/encoder": [10.0],
                "positions/encoder": [12.0],
                "ponder_max/encoder": [5.0],
                "ponder_histogram/encoder": [[0.0, 2.0, 10.0]],
                "halting_probability/encoder": [[1.0, 12.0]],
            }
        ),
    )
    interval.add(3, measured())
    metrics, vectors = interval.metrics(), interval.vectors()
    assert metrics["train/ponder_time/encoder/mean"] == 1.1
    assert metrics["train/ponder_time/encoder/max"] == 5.0
    assert vectors["ponder_time/encoder"].tolist() == [0.0, 6.0, 14.0]
    assert vectors["halting_probability/encoder"].tolist() == [0.35, 1.0]


def test_a_model_that_does_not_halt_has_no_ponder_time():
    values = {name: value for name, value in measured().items() if not name.startswith(("ponder_h", "halting"))}
    interval = Interval()
    interval.add(1, values)
    assert not [name for name in interval.metrics() if "ponder" in name]
    assert interval.vectors() == {}


def test_an_interval_without_tokens_is_finite():
    interval = Interval()
    interval.add(
        1,
        measured(
            tokens=[0.0],
            right=[0.0],
            cross_entropy=[0.0],
            sequences=[0.0],
            sequence_right=[0.0],
            **{"positions/encoder": [0.0], "ponder_time/encoder": [0.0]},
        ),
    )
    assert all(np.isfinite(value) for value in interval.metrics().values())


@pytest.mark.parametrize("cut", [0, 1, 30, 60])
def test_an_interval_cut_by_a_restart_has_the_same_numbers_to_the_bit(cut):
    steps = random_steps(60)
    whole, first = Interval(), Interval()
    for step, values in enumerate(steps):
        whole.add(step + 1, values)
    for step in range(cut):
        first.add(step + 1, steps[step])
    second = Interval.from_state(json.loads(json.dumps(first.state() if cut else {})))
    for step in range(cut, 60):
        second.add(step + 1, steps[step])
    assert without_rates(second.metrics()) == without_rates(whole.metrics())
    assert all(np.array_equal(second.vectors()[name], value) for name, value in whole.vectors().items())
    assert second.state() == whole.state()


@pytest.mark.parametrize("size", [2, 7, 60])
def test_the_steps_of_one_call_add_up_as_those_of_many(size):
    steps = random_steps(60)
    single, several = Interval(), Interval()
    for step, values in enumerate(steps):
        single.add(step + 1, values)
    for start in range(0, 60, size):
        several.add(start + 1, joined(steps[start : start + size]))
        several.metrics()
    assert several.state() == single.state()


def test_rates_are_of_this_process_only():
    first = Interval()
    first.add(1, measured(examples=[1e6]))
    second = Interval.from_state(first.state())
    second.add(2, measured(examples=[0.0], tokens=[0.0]))
    assert second.metrics()["train/examples_per_second"] == 0.0


def test_a_restarted_clock_leaves_what_was_before_out_of_the_rates():
    interval = Interval()
    interval.add(1, measured(examples=[1e6]))
    interval.restart_clock()
    interval.add(2, measured(examples=[0.0]))
    metrics = interval.metrics()
    assert metrics["train/examples_per_second"] == 0.0
    assert metrics["train/accuracy"] == 0.5
    assert len(interval) == 2


def test_skipped_steps_are_counted_and_do_not_spoil_the_means():
    interval = Interval()
    interval.add(
        1,
        measured(
            3,
            loss=[1.0, NAN, 2.0],
            cross_entropy=[20.0, NAN, 40.0],
            gradient_norm=[3.0, INF, INF],
            applied=[1.0, 0.0, 0.0],
            **{"halting_probability/encoder": [[3.0, 4.0], [NAN, NAN], [3.0, 4.0]]},
        ),
    )
    metrics = interval.metrics()
    assert metrics["train/skipped"] == interval.skipped == 2
    assert (metrics["train/loss"], metrics["train/cross_entropy"], metrics["train/gradient_norm"]) == (1.5, 3.0, 3.0)
    assert interval.vectors()["halting_probability/encoder"].tolist() == [0.75, 1.0]
    assert len(interval) == 3


def test_an_interval_in_which_every_step_was_skipped_has_no_means():
    interval = Interval()
    interval.add(1, measured(loss=[NAN], cross_entropy=[NAN], gradient_norm=[NAN], applied=[0.0]))
    assert without_rates(interval.metrics()).keys() == {"train/learning_rate", "train/skipped"}


def test_steps_skipped_in_a_row_are_counted_over_lines_and_restarts():
    first = Interval()
    first.add(1, measured(3, applied=[0.0, 1.0, 0.0]))
    second = Interval(first)
    second.add(4, measured(2, applied=[0.0, 0.0]))
    third = Interval.from_state(json.loads(json.dumps(Interval(second).state())))
    third.add(6, measured(applied=[0.0]))
    assert [one.in_a_row for one in (first, second, third)] == [1, 3, 4]
    third.add(7, measured(applied=[1.0]))
    assert third.in_a_row == 0


@pytest.mark.parametrize("bad", [NAN, INF])
def test_the_first_loss_that_is_not_finite_is_found(bad):
    interval = Interval()
    interval.add(7, measured(2))
    interval.add(9, measured(3, loss=[1.0, bad, NAN]))
    interval.metrics()  # adds the steps up; what was bad is not forgotten
    interval.add(12, measured(loss=[NAN]))
    found = interval.first_bad_step()
    assert (found.step, found.name) == (10, "loss")
    assert not np.isfinite(found.value)


def test_a_gradient_that_is_not_finite_is_bad_where_it_was_applied():
    interval = Interval()
    interval.add(1, measured(3, gradient_norm=[INF, INF, 1.0], applied=[0.0, 1.0, 1.0]))
    assert interval.first_bad_step() == BadStep(2, INF, "gradient norm")
    assert interval.first_bad_step(skipping=True) == BadStep(2, INF, "gradient norm")


def test_a_skipped_step_is_bad_only_where_steps_are_not_to_be_skipped():
    interval = Interval()
    interval.add(1, measured(loss=[INF], gradient_norm=[NAN], applied=[0.0]))
    assert interval.first_bad_step(skipping=True) is None
    assert interval.first_bad_step() == BadStep(1, INF, "loss")
    interval.add(2, measured(loss=[INF]))
    assert interval.first_bad_step(skipping=True) == BadStep(2, INF, "loss")
