"""Edit distance of token sequences. Standard library only."""


def edit_distance(first, second):
    """Returns how many insertions, deletions and substitutions turn one list into the other."""
    row = list(range(len(second) + 1))
    for i, token in enumerate(first, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (token != other))
    return row[-1]


def edit_distance_rate(outputs, references):
    """Returns the edit distance in words of a list of texts, divided by the words of the right ones."""
    pairs = [(output.split(), reference.split()) for output, reference in zip(outputs, references, strict=True)]
    words = sum(len(reference) for _, reference in pairs)
    return sum(edit_distance(*pair) for pair in pairs) / max(words, 1)
