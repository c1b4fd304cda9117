"""Pictures of a model at work: how many steps each position was pondered.

Shapes: L source length, M target length. Every function returns a `matplotlib.figure.Figure`, which a
notebook shows and `figure.savefig("name.png")` writes; no global state of pyplot is touched.
"""

import io
import textwrap

import numpy as np

_WIDTH = 8.0  # inches
_BAR = "#4477aa"
_MARKED = "#cc6677"
_GRID = "#dddddd"
_LONGEST_LABEL = 48  # characters in a line
_ROW = 42  # tokens in one row of a strip, at most


def ponder_times(
    tokens, ponder_times, target_tokens=None, target_ponder_times=None, title="", max_steps=None, marked=()
):
    """Draws the ponder time of each position of one example.

    Sentences (tokens with a space inside) are drawn as horizontal bars with the sentence beside them, symbols
    and words as strips of coloured cells.

    Args:
        tokens: list of L strings, one per source position.
        ponder_times: [>= L] float, steps taken at these positions; what lies behind them is padding.
        target_tokens: list of M strings; None where the model has no decoder.
        target_ponder_times: [>= M] float.
        title: one line above the picture.
        max_steps: the scale ends here (`act_max_steps`); None: at the largest ponder time.
        marked: source positions to draw in another colour (a question among facts).

    Returns:
        matplotlib.figure.Figure.

    Example:

    >>> figure = ponder_times(["3", "1", "4"], [2.0, 1.0, 5.0], title="three digits")
    >>> figure.axes[0].get_title()
    'three digits'
    """
    ponder_times = _cut(tokens, ponder_times, "ponder_times")
    sides = [("source", list(tokens), ponder_times)]
    if target_tokens is not None:
        sides.append(("target", list(target_tokens), _cut(target_tokens, target_ponder_times, "target_ponder_times")))
    largest = max([1.0, *(side[2].max() for side in sides if len(side[2]))])
    scale = max(float(max_steps), largest) if max_steps else largest
    if any(" " in token.strip() for token in tokens):
        return _bars(*sides[0][1:], title, scale, set(marked))
    return _strips(sides, title, scale)


def _cut(tokens, times, name):
    times = np.asarray(times, np.float32)
    if times.ndim != 1 or len(times) < len(tokens):
        raise ValueError(f"{name} of shape {times.shape} does not cover {len(tokens)} tokens")
    return times[: len(tokens)]


def _figure(height):
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure that a notebook shows even if nobody imported pyplot."""

        def _repr_png_(self):
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    return ShownFigure(figsize=(_WIDTH, height), dpi=120, layout="constrained")


def _bars(sentences, times, title, scale, marked):
    """One horizontal bar for each sentence, the first on top, its ponder time at its end."""
    labels = [textwrap.fill(sentence, _LONGEST_LABEL) for sentence in sentences]
    lines = sum(1 + label.count("\n") for label in labels)
    figure = _figure(0.9 + 0.3 * max(lines, 2))
    axes = figure.add_subplot()
    rows = np.arange(len(labels))
    colours = [_MARKED if row in marked else _BAR for row in rows]
    axes.barh(rows, times, color=colours, height=0.7, zorder=2)
    for row, time in zip(rows, times, strict=True):
        axes.annotate(f"{time:.2g}", (time, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(rows, labels, fontsize=9, parse_math=False)
    for label, colour in zip(axes.get_yticklabels(), colours, strict=True):
        label.set_color(colour if colour == _MARKED else "black")
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, scale * 1.05)
    axes.set_xlabel("ponder time (steps)")
    axes.set_title(title, fontsize=11, parse_math=False)
    axes.grid(axis="x", color=_GRID, zorder=0)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure


def _strips(sides, title, scale):
    """Rows of cells, coloured by ponder time, the token inside; a long side goes on in the next row."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    rows = []
    for name, tokens, times in sides:
        size = -(-len(tokens) // max(1, -(-len(tokens) // _ROW))) or 1
        for start in range(0, len(tokens), size):
            end = min(start + size, len(tokens))
            label = name if len(tokens) <= size else f"{name}\n{start}-{end - 1}"
            rows.append((label, tokens[start:end], times[start:end]))
    columns = max([8, *(len(tokens) for _, tokens, _ in rows)])
    room = 0.8 * 72 * _WIDTH / columns  # points
    figure = _figure(0.9 + 0.62 * len(rows))
    axes = figure.add_subplot()
    cells = np.full((len(rows), columns), np.nan, np.float32)
    for row, (_, tokens, times) in enumerate(rows):
        cells[row, : len(tokens)] = times
    colours, norm = colormaps["YlGnBu"], Normalize(0, scale)
    image = axes.pcolormesh(cells, cmap=colours, norm=norm, edgecolors="white", linewidth=1)
    for row, (_, tokens, times) in enumerate(rows):
        for column, (token, time) in enumerate(zip(tokens, times, strict=True)):
            colour = "white" if norm(time) > 0.6 else "black"
            size, small = min(10.0, max(3.0, 1.4 * room / max(len(token), 1))), min(8.0, 0.45 * room)
            place = {"color": colour, "ha": "center", "va": "center", "parse_math": False}
            axes.text(column + 0.5, row + 0.38, token, fontsize=size, **place)
            axes.text(column + 0.5, row + 0.76, f"{time:.2g}", fontsize=small, **place)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [name for name, _, _ in rows], fontsize=9)
    axes.set_xticks([])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(title, fontsize=11, parse_math=False)
    figure.colorbar(image, ax=axes, label="steps", shrink=0.9, pad=0.01)
    return figure
