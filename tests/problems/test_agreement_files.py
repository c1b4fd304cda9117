"""The files of the agreement problems: official layout, faults, the published evaluation sets."""

import json
import re

import pytest

from problems import agreement_files, textio
from problems.sources import Source
from tests.problems import agreement_samples
from ut_keras.errors import UserError

NAME = "agr_50_mostcommon_10K.tsv"
SHARES = {"train_percent": 9, "dev_percent": 1, "seed": 1}


@pytest.fixture
def folder(tmp_path):
    return agreement_samples.write_tsv(tmp_path)


def _read(folder, **changes):
    splits = agreement_files.read_tsv(Source(folder), **{**SHARES, **changes})
    return {name: list(rows) for name, rows in splits.items()}


def test_shares_are_nine_one_and_ninety_percent_of_a_seeded_shuffle(folder):
    splits = _read(folder)
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 48, "dev": 5, "test": 487}
    assert _read(folder) == splits
    assert _read(folder, seed=2)["train"] != splits["train"]
    contexts = sorted(row["context"] for rows in splits.values() for row in rows)
    assert contexts == sorted(" ".join(row[0].split()[: row[10] - 1]) for row in agreement_samples.rows())


def test_row_ends_before_the_verb_whose_index_counts_from_one(folder):
    table = agreement_samples.rows()[:3]
    assert table[2][0] == 'the key of the cabinets is `` good " .'
    (row,) = (
        row
        for rows in _read(agreement_samples.write_tsv(folder, table)).values()
        for row in rows
        if row["intervening"] and row["attractors"]
    )
    assert row == {
        "context": "the key of the cabinets",
        "verb": "is",
        "wrong": "",
        "number": "VBZ",
        "attractors": 1,
        "intervening": 1,
        "paradigm": -1,
    }


def test_plain_compressed_and_downloaded_file_are_read_alike(folder, tmp_path):
    expected = _read(folder)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / NAME).write_bytes(agreement_samples.tsv_bytes(agreement_samples.rows(), compressed=False))
    assert _read(plain) == expected
    # A download has a name of its own and is no archive.
    assert _read(folder / f"{NAME}.gz") == expected


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("verb_index", 99, "line 3: verb_index 99 is past the"),
        ("verb_index", 0, "line 3: verb_index '0' is not an integer from 1"),
        ("verb_index", "x", "line 3: verb_index 'x' is not an integer from 1"),
        ("n_diff_intervening", "-1", "line 3: n_diff_intervening '-1' is not an integer from 0"),
        ("verb_pos", "VBD", "line 3: verb_pos 'VBD' is neither VBZ nor VBP"),
    ],
)
def test_field_that_does_not_fit_is_named(folder, column, value, message):
    table = agreement_samples.rows()[:5]
    table[1][agreement_samples.HEADER.index(column)] = value
    with pytest.raises(UserError, match=f"^{NAME}: {message}"):
        _read(agreement_samples.write_tsv(folder, table))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", f"^{NAME} is empty"),
        (b"sentence\tverb_index\n", f"^{NAME}: line 1: the header has no column 'verb_pos'"),
        (b"<html>\nSorry\n", f"^{NAME}: line 1: the header has no column 'sentence'"),
        (
            agreement_samples.tsv_bytes([["a", "b"]], compressed=False),
            f"^{NAME}: line 2: 2 columns, and the header has 18",
        ),
        (agreement_samples.tsv_bytes(agreement_samples.rows()[:2], compressed=False), "has 2 dependencies"),
        (agreement_samples.tsv_bytes(agreement_samples.rows())[:500], f"{NAME} is broken"),
    ],
)
def test_file_that_is_not_of_the_layout_is_refused(tmp_path, data, message):
    (tmp_path / NAME).write_bytes(data)
    with pytest.raises(UserError, match=message):
        _read(tmp_path)


def test_published_subset_has_its_counts_and_right_forms_in_place(shared_agreement):
    rows = agreement_files.read_subset(Source(shared_agreement))
    counts = [sum(row["attractors"] == count for row in rows) for count in range(6)]
    assert (len(rows), counts) == (5056, [1340, 1316, 1312, 866, 222, 0])
    assert rows[0] == {
        "context": "the two versions of the game",
        "verb": "have",
        "wrong": "has",
        "number": "VBP",
        "attractors": 1,
        "intervening": -1,
        "paradigm": -1,
    }
    assert not any(re.search("[A-Z]", row["verb"] + row["wrong"]) for row in rows)
    # Three rows have the same form twice.
    assert sum(row["number"] == "" for row in rows) == sum(row["wrong"] == "" for row in rows) == 3


def test_subset_whose_verb_is_elsewhere_is_refused(tmp_path):
    head = "n_attractors\tverb_index\tcorrect\twrong\tsentence\n"
    (tmp_path / "linzen_subset.tsv").write_text(head + "0\t1\tare\tis\tthe keys are here\n")
    with pytest.raises(UserError, match=r"linzen_subset.tsv: line 2: word 1 \(from 0\) of its sentence is not 'are'"):
        agreement_files.read_subset(Source(tmp_path))


def test_blimp_pairs_differ_where_the_one_prefix_method_says():
    rows = agreement_files.read_blimp()
    folder = agreement_files.blimp_folder()
    records = [
        json.loads(line)
        for name in agreement_files.PARADIGMS
        for line in textio.read_lines(folder / f"{name}.jsonl.gz")
    ]
    assert len(rows) == len(records) == 2000
    for row, record in zip(rows, records, strict=True):
        assert row["context"].split() == agreement_files.words(record["one_prefix_prefix"])
        assert row["verb"] == agreement_files.words(record["one_prefix_word_good"])[0]
        assert row["wrong"] == agreement_files.words(record["one_prefix_word_bad"])[0]
        assert row["number"] in ("VBZ", "VBP")
    assert [sum(row["paradigm"] == index for row in rows) for index in (0, 1)] == [1000, 1000]
