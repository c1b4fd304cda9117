"""An `Explanation` as one HTML page that needs no network: style, script and numbers are inside.

What matters most (tokens, ponder times, a table of numbers) is written here as plain HTML; the script adds the
charts and the attention. The page's content security policy allows this style and this script alone, so that no text
of a user can become either.

Legend: L positions of a side, T steps that were run.
"""

import base64
import hashlib
import html
import importlib.resources
import json
import math
import string

import numpy as np

from trainer.explain_legend import legend
from trainer.explain_tokens import numbers, tokens
from trainer.token_names import direction, visible

_SCRIPTS = ("state.js", "colour.js", "roving.js", "tokens.js", "halting.js", "heatmap.js", "overview.js", "main.js")
_SUBTITLE = ("problem", "depth", "weights")
_TITLE = 60  # characters of the text


def page(explanation):
    """Returns the page as text."""
    style, script = _file("style.css"), "\n".join(_file(name) for name in _SCRIPTS)
    about = dict(explanation.about)
    brief = visible(explanation.text, blank=" ")
    brief = brief if len(brief) <= _TITLE else brief[:_TITLE] + "..."
    parts = {
        "title": html.escape(f"{about.get('problem', 'explain')}: {brief}"),
        "subtitle": html.escape(" \u00b7 ".join(about[what] for what in _SUBTITLE if about.get(what))),
        "answer": _answer(explanation),
        "tokens_title": "Ponder time" if explanation.recurrent else "Tokens",
        "unit": "step" if explanation.recurrent else "layer",
        "ponder": tokens(explanation),
        "numbers": numbers(explanation),
        "legend": _pairs(legend(explanation)),
        "about": _pairs(explanation.about),
        "data": _data(explanation),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
    }
    return string.Template(_file("page.html")).substitute(parts)


def _file(name):
    return (importlib.resources.files("trainer") / "page" / name).read_text(encoding="ascii")


def _hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("ascii")).digest()).decode("ascii")


def _pairs(pairs):
    return "\n".join(f"<dt>{html.escape(what)}</dt><dd>{html.escape(value)}</dd>" for what, value in pairs if value)


def _answer(explanation):
    source, answer = ("text", "answer") if "encoder" in explanation.sides else ("prompt", "continuation")
    rows = [
        (source, _text(explanation.text)),
        (answer if explanation.chosen else f"given {answer}", _text(explanation.answer)),
        ("score", f"probability {_share(math.exp(explanation.score))}, its natural logarithm {explanation.score:.4f}"),
    ]
    lines = [f"<dt>{name}</dt><dd>{shown}</dd>" for name, shown in rows]
    if explanation.classes:
        items = "".join(
            f'<li><bdi>{html.escape(label)}</bdi> <meter min="0" max="1" value="{share:.4f}">{share:.4f}</meter>'
            f"<span>{_share(share)}</span></li>"
            for label, share in explanation.classes
        )
        lines.append(f'<dt>most probable</dt><dd><ol class="classes">{items}</ol></dd>')
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in explanation.notes)
    return f'<dl class="about">{"".join(lines)}</dl>{notes}'


def _text(text):
    if not text:
        return '<i class="quiet">none</i>'
    return f'<span class="text" dir="{direction(text)}">{html.escape(visible(text, blank=" "))}</span>'


def _share(share):
    return f"{share:.4f}" if share >= 0.00005 else f"{share:.1e}"


def _data(explanation):
    """The numbers as JSON: probabilities with 4 decimals, attention in thousandths."""
    sides = {
        name: {
            "title": side.title,
            "tokens": [token.text for token in side.tokens],
            "read": [token.text for token in side.read],
            "special": [index for index, token in enumerate(side.tokens) if token.special],
            "readSpecial": [index for index, token in enumerate(side.read) if token.special],
            "steps": side.steps,
            "limit": side.limit,
            "given": side.given,
            "ponder": _rounded(side.ponder_times),
            "probability": _rounded(side.probability),
            "halting": _rounded(side.halting_probability),
            "remainders": _rounded(side.remainders),
            "likelihood": _rounded(side.likelihood),
        }
        for name, side in explanation.sides.items()
    }
    attention = [
        {
            "title": one.title,
            "queries": one.queries,
            "keys": one.keys,
            "shape": None if one.weights is None else one.weights.shape,
            "weights": None if one.weights is None else np.rint(1000 * one.weights).astype(int).ravel().tolist(),
        }
        for one in explanation.attention
    ]
    values = {
        "sides": sides,
        "attention": attention,
        "threshold": round(explanation.threshold, 4),
        "recurrent": explanation.recurrent,
    }
    # ASCII alone, and no "<": nothing in it can end the element that holds it.
    return json.dumps(values, separators=(",", ":")).replace("<", "\\u003c")


def _rounded(values):
    return None if values is None else np.round(np.asarray(values, np.float64), 4).tolist()
