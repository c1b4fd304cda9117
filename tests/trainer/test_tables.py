"""The table of scores that people read."""

from trainer.tables import evaluation_line, table


def test_groups_are_rows_and_signatures_are_shown():
    scores = {
        "test/count": 12,
        "test/accuracy": 0.5,
        "test/few/count": 8,
        "test/few/accuracy": 0.625,
        "test/few/log_perplexity": 0.5,
        "test/many words/count": 0,
        "test/info": {"groups": ["few", "many words"], "bleu_signature": "nrefs:1|tok:13a", "step": 3},
    }
    assert table(scores).split("\n") == [
        "test/count                12",
        "test/accuracy             0.5000",
        "test/info/bleu_signature  nrefs:1|tok:13a",
        "",
        "test        count  accuracy",
        "few             8    0.6250",
        "many words      0         -",
    ]


def test_a_group_whose_name_begins_as_another_has_its_own_row():
    scores = {"dev/a/count": 1, "dev/a/b/count": 2, "dev/info": {"groups": ["a", "a/b"]}}
    assert table(scores).split("\n") == ["", "dev  count", "a        1", "a/b      2"]


def test_each_split_has_a_table_of_its_groups():
    scores = {"x/g/count": 1, "y/g/count": 2, "x/info": {"groups": ["g"]}, "y/info": {"groups": ["g"]}}
    assert table(scores).split("\n") == ["", "x  count", "g      1", "", "y  count", "g      2"]


def test_a_large_perplexity_does_not_fill_the_line():
    line = evaluation_line(20, {"dev/count": 1234, "dev/accuracy": 0.25, "dev/perplexity": 30722723.68})
    assert line == "step 20  dev (1,234 examples): accuracy 0.2500  perplexity 3.07e+07"
