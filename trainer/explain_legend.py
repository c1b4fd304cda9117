"""What the words of a page about an `Explanation` mean, those that it uses."""


def legend(explanation):
    """Returns [(term, meaning)], pairs of text."""
    pairs = []
    if explanation.recurrent:
        pairs += [("step", _STEP), ("ponder time", _PONDER_TIME)]
    else:
        pairs.append(("layer", _LAYER))
    if any(side.probability is not None for side in explanation.sides.values()):
        pairs.append(("halting probability", _HALTING.format(explanation.threshold)))
    pairs.append(("attention", _ATTENTION.format("step" if explanation.recurrent else "layer")))
    if "decoder" in explanation.sides:
        which = "answer" if "encoder" in explanation.sides else "text"
        pairs.append((f"rows and columns of the {which}", _DECODER))
    if any(side.given for side in explanation.sides.values()):
        pairs.append(("dashed frame", _GIVEN))
    return [*pairs, ("signs", _SIGNS)]


_STEP = "The model applies the same block again and again; one application, to all tokens at once, is a step."
_PONDER_TIME = "The number of steps that a token took."
_LAYER = "The model applies different blocks one after the other; each is a layer."
_HALTING = (
    "At each step a token's state says how probable it is that it has been refined enough. These probabilities are "
    "added up; the token halts in the step in which the sum reaches {:g}, or at the last step there is. What was left "
    "to 1 before the step in which it halts is its remainder."
)
_ATTENTION = (
    "At each {} every token looks at the others: each head gives it weights over them that add up to 1, and it takes "
    "up that much of each. A row of the map is a token that looks, a column one that is looked at."
)
_DECODER = (
    "A position predicts a token from those before it: as a row it bears the token that it predicts, as a column the "
    "one that it reads, which stands one place earlier (at the beginning <start>)."
)
_GIVEN = "A token of the prompt: it was given, and the model predicts it all the same."
_SIGNS = "\u2423 is a blank; <...> and U+... are names of what has no picture; 0x.. is a byte."
