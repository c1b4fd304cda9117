"""Pictures of ponder time: what they show, and that every kind of input can be drawn."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from ut_keras.plots import ponder_times

FACTS = ["Mary moved to the bathroom .", "John went to the hallway .", "Where is Mary ?"]


def _texts(axes):
    return [text.get_text() for text in axes.texts]


def test_sentences_become_one_bar_each_from_top_to_bottom():
    axes = ponder_times(FACTS, [2.0, 1.0, 3.0], title="kitchen").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == FACTS
    assert [bar.get_width() for bar in axes.patches] == [2.0, 1.0, 3.0]
    assert axes.yaxis_inverted()
    assert axes.get_title() == "kitchen"


def test_marked_sentence_has_another_colour():
    axes = ponder_times(FACTS, [2.0, 1.0, 3.0], marked=[2]).axes[0]
    colours = [bar.get_facecolor() for bar in axes.patches]
    assert colours[0] == colours[1] != colours[2]


def test_padding_behind_the_tokens_is_not_drawn():
    axes = ponder_times(FACTS, [2.0, 1.0, 3.0, 0.0, 0.0]).axes[0]
    assert len(axes.patches) == 3


def test_long_sentence_is_wrapped():
    axes = ponder_times(["word " * 40, "short one"], [1.0, 2.0]).axes[0]
    lines = axes.get_yticklabels()[0].get_text().splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 48


def test_symbols_become_cells_with_their_steps_and_both_sides_are_shown():
    axes = ponder_times(list("31"), [1.0, 2.5], list("13"), [3.0, 4.0]).axes[0]
    assert _texts(axes) == ["3", "1", "1", "2.5", "1", "3", "3", "4"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["source", "target"]


def test_long_sequence_goes_on_in_the_next_row():
    axes = ponder_times(["7"] * 100, np.ones(100)).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["source\n0-33", "source\n34-67", "source\n68-99"]


def test_scale_ends_at_the_most_steps_possible():
    assert ponder_times(FACTS, [2.0, 1.0, 3.0], max_steps=8).axes[0].get_xlim()[1] == pytest.approx(8.4)
    assert ponder_times(list("ab"), [1.0, 2.0], max_steps=8).axes[0].collections[0].norm.vmax == 8


@pytest.mark.parametrize("tokens", [[], [""], ["$"], [" "], ["$x_{y$", "\\frac"], ["$x_{y$ z"]])
def test_any_token_can_be_drawn(tokens, tmp_path):
    figure = ponder_times(tokens, np.ones(len(tokens)))
    assert isinstance(figure, Figure)
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"


def test_a_notebook_can_show_the_figure_without_pyplot():
    assert ponder_times(list("ab"), [1.0, 2.0])._repr_png_()[:4] == b"\x89PNG"


def test_too_few_ponder_times_are_refused():
    with pytest.raises(ValueError, match="ponder_times of shape .2,. does not cover 3 tokens"):
        ponder_times(FACTS, [1.0, 2.0])
