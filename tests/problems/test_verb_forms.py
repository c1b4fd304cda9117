"""Forms of verbs: rules on spellings, and the choice among known words."""

import gzip

import pytest

from problems import verb_forms
from problems.verb_forms import PLURAL, SINGULAR


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("is", "are"),
        ("has", "have"),
        ("does", "do"),
        ("goes", "go"),
        ("walks", "walk"),
        ("uses", "use"),
        ("passes", "pass"),
        ("reaches", "reach"),
        ("fixes", "fix"),
        ("carries", "carry"),
        ("plays", "play"),
        ("lies", "lie"),
        ("VBZ", "VBP"),
    ],
)
def test_forms_are_found_both_ways(singular, plural):
    assert verb_forms.singular_of(plural) == singular
    assert plural in verb_forms.plural_candidates(singular)
    assert (verb_forms.number_of(singular, plural), verb_forms.number_of(plural, singular)) == (SINGULAR, PLURAL)


def test_word_seen_as_a_verb_wins_over_other_words():
    words = {"us", "use", "uses"}
    assert verb_forms.other_form("uses", SINGULAR, (), {"us"}) == "us"
    assert verb_forms.other_form("uses", SINGULAR, {"us"}, words) == "us"
    assert verb_forms.other_form("uses", SINGULAR, (), words) == "use"
    assert verb_forms.other_form("tries", SINGULAR, {"try"}, {"trie", "try"}) == "try"


def test_form_that_nobody_knows_is_none():
    assert verb_forms.other_form("walks", SINGULAR, {"walks"}, {"walks"}) is None
    assert verb_forms.other_form("walk", PLURAL, (), {"walk"}) is None
    assert verb_forms.other_form("walk", SINGULAR, (), {"walk"}) is None


def test_pair_that_is_none_has_no_number():
    assert verb_forms.number_of("lie", "lie") is None
    assert verb_forms.number_of("walk", "runs") is None
    # BLiMP pairs present with past.
    assert (verb_forms.number_of("is", "were"), verb_forms.number_of("were", "is")) == (SINGULAR, PLURAL)


def test_rules_give_every_pair_of_the_published_sentences(shared_agreement):
    with gzip.open(shared_agreement / "linzen_subset.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        pairs = {tuple(line.lower().split("\t")[2:4]) for line in list(file)[1:]}
    wrong = []
    for right, other in pairs:
        number = verb_forms.number_of(right, other)
        if right != other and (number is None or verb_forms.other_form(right, number, (), {other}) != other):
            wrong.append((right, other))
    assert len(pairs) == 455 - 2  # two pairs are there capitalised as well
    assert wrong == []
