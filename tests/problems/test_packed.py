"""Packed splits: layout, atomic writing, and what is never used."""

import json
import os
import time

import numpy as np
import pytest

from problems import packed
from problems.packed import Packed, PackedSplit
from ut_keras.errors import UserError


def _split(name="train", first=2):
    inputs = Packed.from_tokens(np.arange(first, first + 6), [1, 0, 3, 2])
    return PackedSplit(name, inputs, Packed.from_tokens(np.array([5, 6, 7, 8]), [1, 1, 1, 1]), {"cut": 3})


def _make(first=2):
    return {"train": _split("train", first), "dev": _split("dev", 9)}, {"words": ["a"]}


def test_examples_follow_each_other():
    inputs = _split().inputs
    assert inputs.offsets.tolist() == [0, 1, 1, 4]
    assert [inputs[i].tolist() for i in range(4)] == [[2], [], [3, 4, 5], [6, 7]]
    assert inputs[2].dtype == np.int32


def test_gather_pads_with_zero():
    batch = _split().inputs.gather(np.array([2, 1, 0]), 4)
    assert batch.tolist() == [[3, 4, 5, 0], [0, 0, 0, 0], [2, 0, 0, 0]]
    assert batch.dtype == np.int32


def test_gather_of_sentences_keeps_their_words():
    feature = Packed.from_tokens(np.array([[2, 3], [4, 0], [5, 6]]), [2, 1])
    assert feature.width == 2
    assert feature.gather(np.array([1, 0]), 3).tolist() == [
        [[5, 6], [0, 0], [0, 0]],
        [[2, 3], [4, 0], [0, 0]],
    ]
    assert feature.gather(np.zeros(0, np.int64), 3).shape == (0, 3, 2)


def test_rows_with_lengths_are_packed():
    feature = Packed.from_padded(np.array([[2, 3, 0], [4, 0, 0]]), [2, 1])
    assert feature.tokens.tolist() == [2, 3, 4]


@pytest.mark.parametrize(("largest", "dtype"), [(255, np.uint8), (256, np.uint16), (65536, np.int32)])
def test_ids_take_as_few_bytes_as_they_need(largest, dtype):
    feature = Packed.from_tokens(np.array([2, largest]), [2])
    assert feature.tokens.dtype == dtype
    assert feature[0].tolist() == [2, largest]


def test_split_without_inputs():
    split = PackedSplit("train", None, Packed.from_tokens(np.array([2, 3, 4]), [2, 1]))
    assert split.lengths.tolist() == [[0, 2], [0, 1]]
    assert set(split.example(0)) == {"targets"}


def test_fingerprint_is_of_the_content():
    assert _split("a").fingerprint == _split("b").fingerprint
    assert _split(first=2).fingerprint != _split(first=3).fingerprint
    moved = PackedSplit("x", Packed.from_tokens(np.arange(2, 8), [1, 1, 2, 2]), _split().targets)
    assert moved.fingerprint != _split().fingerprint


def test_packed_data_are_opened_again_without_making_them(tmp_path):
    made, extra = packed.open_or_pack(tmp_path, "task", {"limit": 1}, _make)
    again, extra_again = packed.open_or_pack(tmp_path, "task", {"limit": 1}, lambda: pytest.fail("made twice"))
    assert extra == extra_again == {"words": ["a"]}
    assert list(again) == ["train", "dev"]
    for split in (made["train"], again["train"]):
        assert split.fingerprint == _split().fingerprint
        assert split.counts == {"cut": 3}
        assert split.inputs[2].tolist() == [3, 4, 5]


def test_other_settings_never_find_the_old_data(tmp_path):
    packed.open_or_pack(tmp_path, "task", {"limit": 1}, _make)
    other, _ = packed.open_or_pack(tmp_path, "task", {"limit": 2}, lambda: _make(3))
    assert other["train"].inputs[0].tolist() == [3]


def test_interrupted_packing_leaves_nothing_and_is_done_again(tmp_path, monkeypatch):
    def stop(path, array):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(np, "save", stop)
        packed.open_or_pack(tmp_path, "task", {}, _make)
    assert not list(tmp_path.iterdir())
    assert len(packed.open_or_pack(tmp_path, "task", {}, _make)[0]["train"]) == 4


def test_directory_of_a_killed_packing_is_never_used_and_later_removed(tmp_path):
    packed.open_or_pack(tmp_path, "task", {}, _make)
    (done,) = tmp_path.iterdir()
    killed = tmp_path / f"{done.name}.incomplete.abc"
    done.rename(killed)
    (killed / "meta.json").unlink()
    old = time.time() - 7200
    os.utime(killed, (old, old))
    packed.open_or_pack(tmp_path, "task", {}, _make)
    assert list(tmp_path.iterdir()) == [done]


@pytest.mark.parametrize("fault", ["cut", "missing", "no meta", "broken meta"])
def test_damaged_packing_is_done_again(tmp_path, fault):
    packed.open_or_pack(tmp_path, "task", {}, _make)
    (directory,) = tmp_path.iterdir()
    tokens, meta = directory / "train.inputs.tokens.npy", directory / "meta.json"
    if fault == "cut":
        tokens.write_bytes(tokens.read_bytes()[:-1])
    elif fault == "missing":
        tokens.unlink()
    elif fault == "no meta":
        meta.unlink()
    else:
        meta.write_text(json.dumps({})[:1])
    assert packed.open_or_pack(tmp_path, "task", {}, _make)[0]["train"].fingerprint == _split().fingerprint


def test_empty_split_survives(tmp_path):
    empty = Packed.from_tokens(np.zeros(0, np.int64), [])
    splits, _ = packed.open_or_pack(tmp_path, "task", {}, lambda: ({"test": PackedSplit("test", None, empty)}, None))
    assert len(splits["test"]) == 0


def test_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write packed data to .*file"):
        packed.open_or_pack(tmp_path / "file", "task", {}, _make)
