"""The page of an explanation: what it says without script, that text stays text, and how large it gets."""

import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pytest

from tests.trainer.made_explanations import made
from trainer.explain_page import page
from trainer.token_names import Token

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'`",
    "</b>&amp;",
    "a\u2028b",
    "\u202eevil",
    "</title><img src=x onerror=y>",
    "$data",
]


class Parsed(html.parser.HTMLParser):
    """The elements of a page, the text inside of each kind, and the texts of its buttons."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.texts, self._open = [], [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attributes]
        self.texts.setdefault(tag, []).append("")
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        for tag in set(self._open):
            self.texts[tag][-1] += data


def numbers_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_tokens_and_ponder_times_are_there_without_script():
    explanation = made(["how", "old"], ["42"])
    times = explanation.sides["encoder"].ponder_times
    buttons = Parsed(page(explanation)).texts["button"]
    assert buttons[0] == "how3" and buttons[1] == f"old{times[1]:g}"
    assert buttons[2].startswith("<end>") and buttons[3].startswith("42")


def test_the_table_holds_the_halting_probability_of_each_step():
    explanation = made(["how", "old"], None)
    side = explanation.sides["encoder"]
    cells = Parsed(page(explanation)).texts["td"]
    first = [f"{side.ponder_times[0]:g}", f"{side.remainders[0]:.3f}"]
    first += [f"{value:.3f}" for value in side.halting_probability[:, 0]]
    assert cells[: len(first)] == first


def test_more_steps_have_a_later_colour():
    explanation = made(["a", "b", "c"], None, steps=5)
    explanation.sides["encoder"].ponder_times[:] = [5, 1, 3, 5]
    classes = [value for tag, name, value in Parsed(page(explanation)).attributes if (tag, name) == ("button", "class")]
    assert [value.split()[1] for value in classes[:4]] == ["v8", "v0", "v4", "v8"]


def test_hostile_text_is_shown_and_nothing_else():
    clean, hostile = (
        page(made(words, words, text=" ".join(words), answer=words[0], classes=[])) for words in (["a"] * 7, HOSTILE)
    )
    assert Parsed(hostile).elements == Parsed(clean).elements
    shown = Parsed(hostile).texts
    assert any(text.startswith(HOSTILE[0]) for text in shown["bdi"]) and "aU+2028b" in shown["bdi"]
    assert "U+202Eevil" in shown["bdi"] and "$data" in shown["bdi"]
    assert HOSTILE[0] in shown["title"][0]
    assert numbers_of(hostile)["sides"]["encoder"]["tokens"][0] == HOSTILE[0]
    for sign in ("\u2028", "\u202e"):
        assert sign not in hostile


def test_nothing_is_fetched_and_only_our_script_runs():
    text = page(made(["a"], ["b"]))
    addresses = set(re.findall(r"https?://[^\s\"'<>)]*", text))
    assert addresses == {"http://www.w3.org/2000/svg"}, "a namespace is no request"
    parsed = Parsed(text)
    assert not [
        one for one in parsed.attributes if one[1] in ("src", "srcset", "action", "style") or one[1].startswith("on")
    ]
    assert [value for _, name, value in parsed.attributes if name == "href"] == ["data:,"]
    policy = next(value for tag, name, value in parsed.attributes if tag == "meta" and "default-src" in (value or ""))
    assert "default-src 'none'" in policy
    for element in ("style", "script"):
        digest = hashlib.sha256(parsed.texts[element][-1].encode()).digest()
        assert f"{element}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_numbers_are_rounded_and_complete():
    explanation = made(["how", "old"], ["42"], blocks=2)
    values = numbers_of(page(explanation))
    side = explanation.sides["decoder"]
    assert values["sides"]["decoder"]["likelihood"] == np.round(side.likelihood, 4).tolist()
    assert (
        values["sides"]["encoder"]["halting"] == np.round(explanation.sides["encoder"].halting_probability, 4).tolist()
    )
    assert values["sides"]["decoder"]["read"] == ["<start>", "42"] and values["sides"]["decoder"]["readSpecial"] == [0]
    for one, stored in zip(explanation.attention, values["attention"], strict=True):
        weights = np.reshape(stored["weights"], stored["shape"])
        np.testing.assert_allclose(weights / 1000, one.weights, atol=0.0005001)


def test_thirty_tokens_eight_heads_and_twelve_steps_are_below_three_megabytes():
    words = [f"word{number}" for number in range(29)]
    assert len(page(made(words, words, steps=12, heads=8))) < 3e6


def test_right_to_left_text_begins_at_the_right():
    attributes = Parsed(page(made(["\u05e9\u05dc\u05d5\u05dd", "abc"], ["abc", "\u05e9"]))).attributes
    assert [value for tag, name, value in attributes if (tag, name) == ("ol", "dir")] == ["rtl", "ltr"]
    assert [value for tag, name, value in attributes if (tag, name) == ("span", "dir")] == ["rtl", "ltr"]


def test_sentences_are_a_list():
    explanation = made(["a"], None)
    explanation.sides["encoder"].tokens[0] = Token("where is mary?")
    classes = [value for tag, name, value in Parsed(page(explanation)).attributes if (tag, name) == ("ol", "class")]
    assert "tokens listed" in classes


@pytest.mark.parametrize(
    ("changes", "words", "absent"),
    [
        ({}, ["ponder time", "halting probability", "rows and columns of the answer"], ["layer", "dashed frame"]),
        ({"halts": False}, ["ponder time", "does not halt by itself"], ["halting probability"]),
        ({"recurrent": False}, ["no recurrence", "layer"], ["ponder time", "halting probability"]),
    ],
)
def test_the_legend_explains_what_the_model_has(changes, words, absent):
    parsed = Parsed(page(made(["a"], ["b"], **changes)))
    text = " ".join(parsed.texts["dt"] + parsed.texts["p"])
    assert [word for word in words if word not in text] == []
    assert [word for word in absent if word in parsed.texts["dt"]] == []


def test_a_prompt_is_told_from_its_continuation():
    parsed = Parsed(page(made(None, ["once", "upon"])))
    assert {"prompt", "continuation", "dashed frame"} <= set(parsed.texts["dt"])
    classes = [value for tag, name, value in parsed.attributes if (tag, name) == ("button", "class")]
    assert "given" in classes[0] and "given" not in classes[1]


def test_a_given_answer_and_what_was_cut_are_named():
    parsed = Parsed(page(made(["a"], ["b"], chosen=False, notes=["kept the last <70>"])))
    assert "given answer" in parsed.texts["dt"] and "kept the last <70>" in parsed.texts["p"]


def test_the_most_probable_classes_are_listed():
    parsed = Parsed(page(made(["a"], None)))
    assert "<b>no</b> 0.25000.2500" in parsed.texts["li"] and "b" not in parsed.elements


def test_attention_that_was_too_much_is_missing_and_the_rest_is_there():
    explanation = made(["a"], ["b"])
    without = [explanation.attention[0]._replace(weights=None), *explanation.attention[1:]]
    stored = numbers_of(page(explanation._replace(attention=without)))["attention"]
    assert stored[0]["shape"] is stored[0]["weights"] is None and stored[1]["weights"]
