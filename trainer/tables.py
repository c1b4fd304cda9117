"""Scores as text that people read. Standard library only."""

# Of a group; eval.json has them.
_HIDDEN = (
    *("/log_perplexity", "/max", "/info", "/accuracy_top5", "/accuracy_per_sequence", "/neg_log_perplexity"),
    *("/approx_bleu_score", "/rouge_2_fscore", "/rouge_L_fscore"),
)


def table(scores):
    """Returns scores as lines of "key  value", values aligned; scores of groups as a table with a row for each.

    Args:
        scores: flat dict; "<split>/info" is a dictionary, of which names of groups and signatures are looked at.
    """
    groups = {f"{key.removesuffix('/info')}/{group}/": group for key, group in _groups(scores)}
    lines, rows = {}, {}
    for key, value in scores.items():
        if key.endswith("/info") and isinstance(value, dict):
            lines.update({f"{key}/{name}": text for name, text in value.items() if "signature" in name})
            continue
        prefix = max((prefix for prefix in groups if key.startswith(prefix)), key=len, default=None)
        if prefix is None:
            lines[key] = value
        else:
            rows.setdefault(prefix, {})[key.removeprefix(prefix)] = value
    width = max(map(len, lines), default=0)
    text = [f"{key:{width}}  {number(value)}" for key, value in lines.items()]
    for split in dict.fromkeys(key.removesuffix("info") for key, _ in _groups(scores)):
        parts = {groups[prefix]: values for prefix, values in rows.items() if prefix.startswith(split)}
        text += ["", *_grid(split.removesuffix("/"), parts)]
    return "\n".join(text)


def number(value):
    """Returns a score as text: counts whole, others with 4 places."""
    if isinstance(value, int | str):
        return str(value)
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"


def evaluation_line(step, values):
    """Returns one line of an evaluation's values: accuracies and perplexity, and how many examples they are of."""
    shown = [
        f"{name} {number(values[f'dev/{name}'])}"
        for name in (
            *("teacher_forced/accuracy", "teacher_forced/sequence_accuracy", "teacher_forced/perplexity"),
            *("accuracy", "perplexity", "last_word/accuracy", "last_word/perplexity", "preference/accuracy"),
        )
        if f"dev/{name}" in values
    ]
    return f"step {step}  dev ({values['dev/count']:,} examples): " + "  ".join(shown)


def _groups(scores):
    """Yields (key of the info, group)."""
    for key, value in scores.items():
        if key.endswith("/info") and isinstance(value, dict):
            for group in value.get("groups", ()):
                yield key, group


def _grid(title, parts):
    """Returns the lines of a table: a row for each group, a column for each metric that a group has."""
    columns = dict.fromkeys(metric for part in parts.values() for metric in part if not f"/{metric}".endswith(_HIDDEN))
    heads = [_head(metric) for metric in columns]
    cells = [[number(part[metric]) if metric in part else "-" for metric in columns] for part in parts.values()]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    first = max(len(title), *map(len, parts))
    lines = [[f"{title:{first}}", *(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]]
    for group, row in zip(parts, cells, strict=True):
        lines.append([f"{group:{first}}", *(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))])
    return ["  ".join(line) for line in lines]


def _head(metric):
    return metric.replace("teacher_forced/", "tf/").replace("free_running/", "free/").replace("ponder_time/", "ponder/")
