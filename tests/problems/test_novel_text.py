"""The tokeniser of novels, sentences, and passages of LAMBADA's form."""

import hypothesis
import hypothesis.strategies as st
import pytest

from problems import novel_text, textio


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't!", "do n't !"),
        ("He can't; they won't, I'd've", "he ca n't ; they wo n't , i 'd 've"),
        ('"No," she said.', "`` no , '' she said ."),
        ("\u201cYes\u2014\u201d he said\u2026", "`` yes -- '' he said ..."),
        ("'I won't,' he said, 'go.'", "` i wo n't , ' he said , ` go . '"),
        ("\u2018Give \u2019em the boys\u2019 hats\u2019", "` give 'em the boys ' hats '"),
        ("Mr. Fox of St. Ives at 3:30 p.m. in the U.S. today.", "mr. fox of st. ives at 3:30 p.m. in the u.s. today ."),
        ("So did I. J. Smith knew", "so did i . j. smith knew"),
        ("(two) [2] {ii}", "-lrb- two -rrb- -lsb- 2 -rsb- -lcb- ii -rcb-"),
        ("I cannot; I'm gonna", "i can not ; i 'm gon na"),
        ("one--two ---- three - well-known", "one -- two -- three - well-known"),
        ("What?! No!!! ....", "what ?! no !!! ..."),
        ("O'Connor's ma'am at ten o'clock in the '90s", "o'connor 's ma'am at ten o'clock in the '90s"),
        ("$1,000.50, 20% _not_ mine", "$ 1,000.50 , 20 % not mine"),
        ('He said ("quoted") and--"so on"', "he said -lrb- `` quoted '' -rrb- and -- `` so on ''"),
        ("a\u00a0b\u2028c caf\u00e9", "a b c caf\u00e9"),
        ("", ""),
    ],
)
def test_words_are_those_of_lambada(text, words):
    assert " ".join(novel_text.words(text)) == words


@hypothesis.given(st.text(alphabet=st.one_of(st.sampled_from("ab'\"`.-!? ndt(_*5,\u2019\u201c"), st.characters())))
@hypothesis.settings(max_examples=300, deadline=None)
def test_words_hold_no_blank_and_are_their_own_words(text):
    words = novel_text.words(text)
    assert all(word and not any(character.isspace() for character in word) for word in words)
    # A few characters have no stable lower case; a word that is lower-cased already stays as it is.
    again = novel_text.words(" ".join(words))
    assert novel_text.words(" ".join(again)) == again


def test_published_passages_are_their_own_words(shared_lambada):
    lines = list(textio.read_lines(shared_lambada / "lambada_development_plain_text.txt.gz"))
    same = sum(" ".join(novel_text.words(line)) == line for line in lines)
    # The others have a lost blank after a period ("done.-if"), a curly apostrophe or a period of the rarer kinds.
    assert (len(lines), same >= 4820) == (4869, True)


def test_a_sentence_takes_its_closing_quote_along():
    words = "`` is it ? '' she said . -lrb- yes . -rrb- no ! ! so".split()
    assert [" ".join(sentence) for sentence in novel_text.sentences(words)] == [
        "`` is it ? ''",
        "she said .",
        "-lrb- yes . -rrb-",
        "no !",
        "!",
        "so",
    ]


def test_paragraphs_end_at_blank_lines_and_join_their_lines():
    lines = ["", "one", "  two ", " \t", "", "three"]
    assert list(novel_text.paragraphs(lines)) == ["one two", "three"]


def _sentences(count, length=10):
    return [[f"w{number}"] * (length - 2) + [f"end{number}", "."] for number in range(count)]


def test_passages_follow_each_other_and_end_with_a_word():
    passages = list(novel_text.passages(_sentences(13)))
    # Five sentences of context and one more; the last passage is what is left.
    assert [len(passage) for passage in passages] == [59, 59, 9]
    assert [passage[-1] for passage in passages] == ["end5", "end11", "end12"]
    assert passages[1][0] == "w6"


def test_windows_end_with_every_sentence_and_have_the_least_context():
    windows = list(novel_text.windows(_sentences(8)))
    assert [passage[-1] for passage in windows] == [f"end{number}" for number in range(8)]
    assert [len(passage) for passage in windows] == [9, 19, 29, 39, 49, 59, 59, 59]
    assert windows[7][0] == "w2"


@pytest.mark.parametrize("tail", [". ''", "!", "'s '", "n't -rrb-", "-- ` *"])
def test_no_passage_ends_with_punctuation_or_half_a_word(tail):
    assert list(novel_text.passages([["the", "end", *tail.split()]])) == [["the", "end"]]


def test_a_passage_of_one_word_is_none():
    assert list(novel_text.passages([["end", "."]])) == []
    assert list(novel_text.windows([["."], ["end"]])) == [[".", "end"]]
