"""The batch plan is a pure function of (lengths, settings, seed, step), and the pipeline follows it."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.packed import Packed, PackedSplit
from problems.pipeline import BatchPlan, evaluation_batches, evaluation_plan, training_batches
from ut_keras.errors import UsageError, UserError

LENGTHS = st.lists(st.tuples(st.integers(0, 70), st.integers(1, 70)), min_size=1, max_size=120)


def _epoch(plan, epoch=0):
    first = epoch * plan.steps_per_epoch
    return [plan.padded_batch(step) for step in range(first, first + plan.steps_per_epoch)]


def _indices(batches):
    return sorted(index for batch in batches for index in batch.indices.tolist())


def _split(count=23, width=None, inputs=True):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, (count, 2))

    def feature(lengths, shape=()):
        return Packed.from_tokens(rng.integers(2, 9, (lengths.sum(), *shape)), lengths)

    source = feature(lengths[:, 0], (width,) if width else ()) if inputs else None
    return PackedSplit("train", source, feature(lengths[:, 1]))


@settings(deadline=None)
@given(LENGTHS, st.integers(140, 900), st.integers(0, 2**70), st.integers(0, 3))
def test_epoch_has_each_example_once_and_batches_hold_the_token_limit(lengths, batch_size, seed, epoch):
    plan = BatchPlan(lengths, batch_size, seed=seed)
    batches = _epoch(plan, epoch)
    assert _indices(batches) == list(range(len(lengths)))
    for batch in batches:
        assert 0 < len(batch.indices) * (batch.input_length + batch.target_length) <= batch_size
        sizes = np.array(lengths)[batch.indices]
        assert (sizes <= [batch.input_length, batch.target_length]).all()


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 20), st.integers(0, 3))
def test_fixed_batches_count_examples(lengths, batch_size, epoch):
    batches = _epoch(BatchPlan(lengths, batch_size, fixed=True), epoch)
    assert _indices(batches) == list(range(len(lengths)))
    assert max(len(batch.indices) for batch in batches) <= batch_size
    # Left-overs move on to the next bucket: only the last bucket may have batches that are not full.
    assert len(batches) == -(-len(lengths) // batch_size)


@settings(deadline=None)
@given(LENGTHS, st.lists(st.integers(0, 500), min_size=1, max_size=8), st.integers(0, 9))
def test_step_does_not_depend_on_what_was_asked_before(lengths, steps, seed):
    used = BatchPlan(lengths, 200, seed=seed)
    for step in steps:
        used.batch(step)
    for step in steps:
        fresh = BatchPlan(lengths, 200, seed=seed)
        np.testing.assert_array_equal(used.batch(step), fresh.batch(step))


def test_order_changes_with_epoch_and_seed():
    lengths = [(5, 5)] * 40
    first, second = (np.concatenate([b.indices for b in _epoch(BatchPlan(lengths, 80, seed=1), e)]) for e in (0, 1))
    other = np.concatenate([b.indices for b in _epoch(BatchPlan(lengths, 80, seed=2))])
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_batches_are_not_in_order_of_length():
    plan = BatchPlan([(n, n) for n in range(1, 61) for _ in range(10)], 300)
    lengths = [batch.input_length for batch in _epoch(plan)]
    assert lengths != sorted(lengths)
    assert len(set(lengths)) == len(plan.shapes)


def test_longer_examples_are_dropped_and_counted():
    plan = BatchPlan([(3, 3), (9, 2), (2, 9), (8, 8)], 100, max_length=8)
    assert plan.dropped == 2
    assert plan.examples == 2
    assert _indices(_epoch(plan)) == [0, 3]


def test_story_is_not_cut_as_its_question_would_go(task1):
    split = task1.split("train")
    plan = BatchPlan(split.lengths, batch_size=4, fixed=True, max_length=5, long="cut")
    with pytest.raises(UsageError, match="long_examples=cut would cut off the question"):
        training_batches(split, plan)


def test_padded_lengths_are_the_longest_of_the_bucket():
    assert BatchPlan([(3, 1), (5, 1), (20, 1)], 100).shapes == [(16, 5, 1), (4, 20, 1)]


def test_small_rest_is_spread_over_the_last_batches():
    sizes = [len(batch.indices) for batch in _epoch(BatchPlan([(4, 4)] * 65, 64, fixed=True))]
    assert sorted(sizes) == [32, 33]


def test_plan_without_examples_is_an_error():
    with pytest.raises(UserError, match="no training example of at most max_length=4 positions; there are 2 examples"):
        BatchPlan([(5, 5), (6, 6)], 100, max_length=4)
    with pytest.raises(UserError, match="no training example; there are 0"):
        BatchPlan(np.zeros((0, 2)), 100)


def test_batch_size_below_one_example_is_an_error():
    with pytest.raises(UsageError, match="batch_size=30 is too small for one example of 20 \\+ 20 positions"):
        BatchPlan([(3, 3), (20, 20)], 30)


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 300), st.booleans())
def test_evaluation_has_each_example_once(lengths, batch_size, fixed):
    batches = evaluation_plan(lengths, batch_size, fixed)
    assert _indices(batches) == list(range(len(lengths)))
    for batch in batches:
        size = len(batch.indices) if fixed else len(batch.indices) * (batch.input_length + batch.target_length)
        assert size <= batch_size or len(batch.indices) == 1


def test_limited_evaluation_is_spread_over_the_split():
    assert _indices(evaluation_plan([(1, 1)] * 10, 100, limit=5)) == [0, 2, 4, 6, 8]
    assert _indices(evaluation_plan([(1, 1)] * 10, 100, limit=99)) == list(range(10))
    assert evaluation_plan(np.zeros((0, 2)), 100) == []


@pytest.mark.parametrize("width", [None, 3])
def test_pipeline_gives_the_batches_of_the_plan(width):
    split = _split(width=width)
    plan = BatchPlan(split.lengths, 120)
    for step, batch in enumerate(training_batches(split, plan).take(plan.steps_per_epoch + 2).as_numpy_iterator()):
        planned = plan.padded_batch(step)
        assert batch["inputs"].shape == (len(planned.indices), planned.input_length, *([width] if width else []))
        assert batch["targets"].shape == (len(planned.indices), planned.target_length)
        for row, index in enumerate(planned.indices):
            for feature, ids in split.example(index).items():
                np.testing.assert_array_equal(batch[feature][row, : len(ids)], ids)
                assert not batch[feature][row, len(ids) :].any()


def test_pipeline_from_a_later_step_is_the_tail():
    split = _split()
    plan = BatchPlan(split.lengths, 120)
    whole = list(training_batches(split, plan).take(12).as_numpy_iterator())
    tail = list(training_batches(split, BatchPlan(split.lengths, 120), start_step=7).take(5).as_numpy_iterator())
    for ours, theirs in zip(whole[7:], tail, strict=True):
        np.testing.assert_array_equal(ours["inputs"], theirs["inputs"])


def test_filled_batches_of_a_bucket_have_one_shape_and_the_same_real_rows():
    tokens = Packed.from_tokens(np.arange(2, 32), [3] * 10)
    split = PackedSplit("train", tokens, tokens)
    plan = BatchPlan(split.lengths, 4, fixed=True)  # of 4, 3 and 3 examples
    count = 2 * plan.steps_per_epoch
    plain = list(training_batches(split, plan).take(count).as_numpy_iterator())
    filled = list(training_batches(split, plan, fill_rows=True).take(count).as_numpy_iterator())
    for ours, theirs in zip(filled, plain, strict=True):
        rows = len(theirs["targets"])
        for name in ("inputs", "targets"):
            np.testing.assert_array_equal(ours[name][:rows], theirs[name])
            assert not ours[name][rows:].any()
    assert {len(batch["targets"]) for batch in plain} == {3, 4}
    assert {batch[name].shape for batch in filled for name in batch} == {(4, 3)}


def test_evaluation_batches_name_their_examples():
    split = _split()
    seen = []
    for batch in evaluation_batches(split, 7, fixed=True).as_numpy_iterator():
        for index, row in zip(batch["index"], batch["targets"], strict=True):
            seen.append(int(index))
            np.testing.assert_array_equal(row[row != 0], split.targets[index])
    assert sorted(seen) == list(range(len(split)))


def test_problem_without_inputs_has_targets_alone():
    split = _split(inputs=False)
    (batch,) = itertools.islice(training_batches(split, BatchPlan(split.lengths, 99)).as_numpy_iterator(), 1)
    assert set(batch) == {"targets"}


@pytest.mark.slow  # several processes
def test_program_that_ends_inside_of_an_epoch_does_not_hang():
    code = (
        "import numpy as np\n"
        "from problems.packed import Packed, PackedSplit\n"
        "from problems.pipeline import BatchPlan, training_batches\n"
        "feature = Packed.from_tokens(np.full(6000, 2), np.full(300, 20))\n"
        "split = PackedSplit('train', feature, feature)\n"
        "batches = iter(training_batches(split, BatchPlan(split.lengths, 200)))\n"
        "print([next(batches)['inputs'].shape for _ in range(20)][-1])"
    )
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True, env=environment
    )
    assert done.stdout == "(5, 20)\n"
