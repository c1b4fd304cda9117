"""Packed ids and the batches over them, under random shapes: no example is lost, doubled or changed."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import packed
from problems.packed import Packed, PackedSplit
from problems.pipeline import BatchPlan, evaluation_batches

IDS = st.integers(1, 2**17)
ROWS = st.lists(st.lists(IDS, max_size=9), max_size=12)


def _pack(rows):
    return Packed.from_tokens(np.array([n for row in rows for n in row], np.int64), [len(row) for row in rows])


@settings(deadline=None)
@given(ROWS.filter(bool), st.data())
def test_gather_gives_the_rows_that_were_packed(rows, data):
    feature = _pack(rows)
    indices = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    width = data.draw(st.integers(max([0] + [len(rows[i]) for i in indices]), 14))
    batch = feature.gather(np.array(indices, np.int64), width)
    assert batch.shape == (len(indices), width)
    assert batch.tolist() == [rows[i] + [0] * (width - len(rows[i])) for i in indices]
    assert [feature[i].tolist() for i in indices] == [rows[i] for i in indices]


@settings(deadline=None)
@given(ROWS.filter(bool), st.data())
def test_gather_that_is_narrower_than_a_row_keeps_its_beginning(rows, data):
    width = data.draw(st.integers(0, 9))
    batch = _pack(rows).gather(np.arange(len(rows)), width)
    assert batch.tolist() == [row[:width] + [0] * (width - len(row)) for row in rows]


@settings(deadline=None, max_examples=50)
@given(ROWS, ROWS)
def test_split_survives_the_files_and_its_fingerprint_is_of_the_content(tmp_path_factory, targets, others):
    folder = tmp_path_factory.mktemp("packed")

    def split(rows):
        return PackedSplit("train", None, _pack(rows))

    for number, rows in enumerate((targets, others)):
        opened, _ = packed.open_or_pack(folder, "task", {"n": number}, lambda rows=rows: ({"train": split(rows)}, None))
        assert [opened["train"].targets[i].tolist() for i in range(len(rows))] == rows
        assert opened["train"].fingerprint == split(rows).fingerprint
    assert (split(targets).fingerprint == split(others).fingerprint) == (targets == others)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60), st.data())
def test_plan_keeps_what_fits_and_counts_the_rest(lengths, data):
    longest = data.draw(st.integers(min(max(pair) for pair in lengths), 40))
    plan = BatchPlan(lengths, 200, max_length=longest, seed=data.draw(st.integers(0, 5)))
    epochs = data.draw(st.integers(1, 3))
    fits = [i for i, pair in enumerate(lengths) if max(pair) <= longest]
    seen = np.concatenate([plan.batch(step) for step in range(epochs * plan.steps_per_epoch)])
    assert sorted(seen.tolist()) == sorted(fits * epochs)
    assert (plan.examples, plan.dropped) == (len(fits), len(lengths) - len(fits))
    for step in range(plan.steps_per_epoch):
        batch = plan.padded_batch(step)
        assert len(batch.indices) * (batch.input_length + batch.target_length) <= 200


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(IDS, min_size=1, max_size=20), min_size=1, max_size=20), st.integers(1, 20), st.booleans())
def test_long_examples_are_cut_to_their_beginning_and_counted(rows, longest, without_inputs):
    split = PackedSplit("train", None if without_inputs else _pack(rows), _pack([row[::-1] for row in rows]))
    plan = BatchPlan(split.lengths, 60, max_length=longest, long="cut")
    found = {}
    for step in range(plan.steps_per_epoch):
        batch = plan.padded_batch(step)
        assert max(batch.input_length, batch.target_length) <= longest
        assert len(batch.indices) * (batch.input_length + batch.target_length) <= 60
        for index, ids in zip(
            batch.indices.tolist(), split.targets.gather(batch.indices, batch.target_length).tolist()
        ):
            assert index not in found
            found[index] = [number for number in ids if number]
    assert found == {index: row[::-1][:longest] for index, row in enumerate(rows)}
    assert (plan.cut, plan.dropped) == (sum(len(row) > longest for row in rows), 0)


@settings(deadline=None, max_examples=15)
@given(st.lists(st.lists(IDS, min_size=1, max_size=9), min_size=1, max_size=12), st.integers(1, 40))
def test_evaluation_batches_hold_every_example_once_and_whole(rows, batch_size):
    split = PackedSplit("dev", _pack(rows), _pack([row[::-1] for row in rows]))
    found = {}
    for batch in evaluation_batches(split, batch_size).as_numpy_iterator():
        for index, source, target in zip(batch["index"], batch["inputs"], batch["targets"], strict=True):
            assert index not in found
            found[int(index)] = [source[source > 0].tolist(), target[target > 0].tolist()]
    assert found == {i: [row, row[::-1]] for i, row in enumerate(rows)}
