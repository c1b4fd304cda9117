"""The tokens of an `Explanation` as plain HTML: a coloured button each, and a table of the halting's numbers.

Legend: L positions of a side, T steps that were run.
"""

import html

import numpy as np

from trainer.token_names import direction

_LEVELS = 9  # stops of the colour ramp in page/style.css


def tokens(explanation):
    """Returns the tokens of each side, coloured by ponder time, with its number and a small picture of the halting."""
    times = [side.ponder_times for side in explanation.sides.values() if side.ponder_times is not None]
    most = max([2.0, *(float(np.max(side, initial=0)) for side in times)])
    parts = []
    if not times:
        parts.append('<p class="note">This model has no recurrence: each of its layers runs once at every token.</p>')
    elif all(side.probability is None for side in explanation.sides.values()):
        parts.append('<p class="note">This model does not halt by itself: every token takes the same steps.</p>')
    else:
        swatches = "".join(f'<span class="swatch v{level}"></span>' for level in range(_LEVELS))
        parts.append(f'<p class="ramp quiet">1 step {swatches} {most:g} steps</p>')
    for name, side in explanation.sides.items():
        parts.append(f"<h3>{html.escape(side.title)}{_summary(side)}</h3>{_chips(name, side, most)}")
    return "\n".join(parts)


def _summary(side):
    if side.ponder_times is None or not len(side.tokens):
        return f' <small class="quiet">{len(side.tokens)} tokens</small>'
    mean, most = np.mean(side.ponder_times), np.max(side.ponder_times)
    return (
        f' <small class="quiet">{len(side.tokens)} tokens, mean {mean:.2f} steps, at most {most:g}; '
        f"{side.steps} of {side.limit} steps were run</small>"
    )


def _chips(name, side, most):
    listed = any(" " in token.text for token in side.tokens)  # sentences
    items = []
    for index, token in enumerate(side.tokens):
        names = ["token"]
        picture = number = ""
        if side.ponder_times is not None:
            time = float(side.ponder_times[index])
            number = f'<span class="steps">{time:g}</span>'
        if side.halting_probability is not None:
            names.append(f"v{round((_LEVELS - 1) * max(0.0, time - 1) / (most - 1))}")
            picture = _spark(side.halting_probability[:, index], int(side.ponder_times[index]), side.steps)
        names += ["special"] * token.special + ["given"] * (index < side.given)
        items.append(
            f'<li><button type="button" class="{" ".join(names)}" data-index="{index}">'
            f"<bdi>{html.escape(token.text)}</bdi>{picture}{number}</button></li>"
        )
    turn = direction(" ".join(token.text for token in side.tokens if not token.special))
    kind = "tokens listed" if listed else "tokens"
    label = html.escape(side.title)
    return f'<ol class="{kind}" dir="{turn}" data-side="{name}" aria-label="{label}">{"".join(items)}</ol>'


def _spark(accumulated, ran, steps):
    """A bar for each step that a position took, as high as its halting probability has become."""
    bars = "".join(
        f'<rect x="{5 * step}" y="{16 - 16 * height:.1f}" width="4" height="{16 * height:.1f}"/>'
        for step, height in enumerate(max(float(value), 0.06) for value in accumulated[:ran])
    )
    return f'<svg class="spark" width="{5 * steps}" height="16" aria-hidden="true">{bars}</svg>'


def numbers(explanation):
    """Returns a table of each side where positions halt by themselves, what the charts are drawn from; else ""."""
    tables = []
    for side in explanation.sides.values():
        if side.halting_probability is None:
            continue
        heads = "".join(f"<th scope=col>{step + 1}</th>" for step in range(side.steps))
        last = "<th scope=col>p(token)</th>" if side.likelihood is not None else ""
        rows = []
        for index, token in enumerate(side.tokens):
            ran = int(side.ponder_times[index])
            values = [f"{value:.3f}" for value in side.halting_probability[:ran, index]]
            cells = "".join(f"<td>{value}</td>" for value in values + [""] * (side.steps - ran))
            likelihood = f"<td>{side.likelihood[index]:.3f}</td>" if side.likelihood is not None else ""
            rows.append(
                f"<tr><th scope=row><bdi>{html.escape(token.text)}</bdi></th><td>{side.ponder_times[index]:g}</td>"
                f"<td>{side.remainders[index]:.3f}</td>{cells}{likelihood}</tr>"
            )
        tables.append(
            f'<div class="scroll"><table class="numbers"><caption>{html.escape(side.title)}: halting probability, '
            "added up, after each step</caption><thead><tr><th scope=col>token</th><th scope=col>ponder time</th>"
            f"<th scope=col>remainder</th>{heads}{last}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        )
    return f"<details><summary>All numbers of the halting</summary>{''.join(tables)}</details>" if tables else ""
