"""Explanations that no model made, of any size and text, for tests of the page.

Legend: L positions, T steps, R blocks, H heads, Q queries, K keys.
"""

import numpy as np

from trainer.explanation import Attention, Explanation, Side
from trainer.token_names import END, START, Token, visible


def made(inputs, targets, steps=3, heads=2, blocks=1, halts=True, recurrent=True, seed=0, **changes):
    """Returns the `Explanation` of lists of words; `inputs` None: of a language model, the first target its prompt."""
    rng = np.random.default_rng(seed)
    sides = {}
    if inputs is not None:
        sides["encoder"] = _side(rng, "Input", inputs, steps, halts, recurrent)
    if targets is not None:
        side = _side(rng, "Answer" if inputs is not None else "Text", targets, steps, halts, recurrent)
        sides["decoder"] = side._replace(
            read=[START, *side.tokens[:-1]],
            likelihood=rng.random(len(side.tokens)),
            given=int(inputs is None),
        )
    maps = []
    for queries in sides:
        for keys in sides:
            if (queries, keys) != ("encoder", "decoder"):
                causal = queries == keys == "decoder"
                shape = (steps, blocks, heads, len(sides[queries].tokens), len(sides[keys].tokens))
                weights = _weights(rng, shape, causal)
                maps.append(Attention(f"{queries} looks at {keys}", queries, keys, weights))
    values = {
        "text": " ".join(inputs or targets[:1]),
        "answer": " ".join(targets or ["yes"]),
        "chosen": True,
        "score": -1.5,
        "classes": [] if targets else [("yes", 0.75), ("<b>no</b>", 0.25)],
        "sides": sides,
        "attention": maps,
        "about": [("problem", "made_up"), ("weights", "best/ckpt-9, training step 9")],
        "notes": [],
        "threshold": 0.99,
        "recurrent": recurrent,
    }
    return Explanation(**{**values, **changes})


def _side(rng, title, words, steps, halts, recurrent):
    tokens = [*(Token(visible(word)) for word in words), END]
    side = Side(title, tokens, tokens, steps, steps)
    if not recurrent:
        return side
    times = np.full(len(tokens), float(steps))
    if not halts:
        return side._replace(ponder_times=times)
    times[1:] = rng.integers(1, steps + 1, len(tokens) - 1)
    probability = rng.random([steps, len(tokens)]) * 0.9 / steps
    ran = np.arange(1, steps + 1)[:, None] < times
    accumulated = np.where(ran, np.cumsum(probability, axis=0), 1.0)
    return side._replace(
        ponder_times=times,
        probability=probability,
        halting_probability=accumulated,
        remainders=1.0 - np.cumsum(probability * ran, axis=0)[-1],
    )


def _weights(rng, shape, causal):
    logits = 3 * rng.normal(size=shape)
    if causal:
        logits = np.where(np.tril(np.ones(shape[-2:], bool)), logits, -np.inf)
    weights = np.exp(logits)
    return weights / weights.sum(-1, keepdims=True)
