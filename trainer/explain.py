"""Shows what a trained model does with one text: a page with ponder times, halting and attention of every token.

Shapes: L input positions (S sentences of W words for some problems), N produced ids, V vocabulary size.
"""

import pathlib

import numpy as np

from problems import textio
from trainer import explain_page
from trainer.answers import NOT_FINITE, answer_ids, encode_text, kind_of
from trainer.explanation import Explanation, attention_maps, make_side, refuse_long, traced
from trainer.token_names import sentence_names, token_names
from ut_keras.errors import UserError

PAGE = "explain.html"
_CLASSES = 5  # that are shown


def explain(loaded, text, target=None, to=None):
    """Writes one HTML page, which needs nothing else, about what the model did with a text.

    The model reads the text and its own answer to it (or a given one, for which it is then not asked) in one pass.

    Args:
        loaded: `trainer.load(...)`.
        text: a line as `decode` takes it; of a language model the beginning of a text.
        target: the answer to look at; of a language model what follows; None: the model's own, as `decode` gives it.
        to: where the page is written; None: explain.html in the run directory.

    Returns:
        pathlib.Path of the page.

    Raises:
        UserError: a text is empty, cannot be encoded or is too long, the model is an LSTM or gives numbers that are not
            finite, or `to` cannot be written.
    """
    path = pathlib.Path(to or pathlib.Path(loaded.output_dir) / PAGE)
    textio.refuse_unwritable(path)
    textio.write_text(path, explain_page.page(collect(loaded, text, target)))
    return path


def collect(loaded, text, target=None):
    """Returns the `Explanation` that `explain` draws; arguments and errors are the same."""
    if loaded.hparams.model.startswith("lstm"):
        raise UserError(f"{loaded.hparams.model} has no steps and heads to look at; explain shows Transformers")
    problem = loaded.problem
    kind = kind_of(problem)
    source, answer = encode(problem, text, target)
    if answer is None and kind != "class":
        answer = _answered(loaded, source)
    of_kind = {"class": _of_class, "sequence": _of_sequence, "continuation": _of_continuation}[kind]
    found = of_kind(loaded, source, answer)
    return found._replace(
        text=text,
        chosen=target is None,
        about=_about(loaded, found),
        notes=[note for note in [problem.cut(text)] if note],
        threshold=1.0 - loaded.hparams.act_epsilon,
    )


def encode(problem, text, target=None):
    """Returns (ids of the text, ids of the target or None); arguments and errors are those of `explain`."""
    source = _encoded(problem.encode_input, text, "the text")
    answer = None if target is None else _encoded(problem.encode_target, target, "the target")
    if not len(source) and (kind_of(problem) != "continuation" or answer is None):
        raise UserError("the text is empty: there is nothing to explain")
    return source, answer


def _encoded(encode, text, what):
    try:
        ids = encode_text(encode, text)
    except UserError as error:
        raise UserError(f"{what}: {error}") from None
    refuse_long(len(ids), what)
    return ids


def _answered(loaded, source):
    """Returns the ids [N] that `decode` answers to the ids of one text."""
    ids = answer_ids(loaded, [source])[0].ids
    refuse_long(len(ids), "the model's answer")
    return ids


def _of_class(loaded, source, target):
    """`target`: [1], the label that was given; or None."""
    problem = loaded.problem
    logits, ponder, traces = traced(loaded.model, {"inputs": source[np.newaxis]})
    scores = _log_softmax(logits[0])
    best = [number for number in np.argsort(-scores[1:], kind="stable") + 1 if problem.decode_target([number])]
    chosen = best[0] if target is None else target[0]
    shown = [*best[:_CLASSES], *([] if chosen in best[:_CLASSES] else [chosen])]
    return _explanation(
        problem,
        [chosen],
        scores[chosen],
        sides={"encoder": _input_side(problem, source, ponder, traces)},
        traces=traces,
        classes=[(problem.decode_target([number]), float(np.exp(scores[number]))) for number in shown],
    )


def _of_sequence(loaded, source, target):
    problem = loaded.problem
    features = {"inputs": source[np.newaxis], "targets": target[np.newaxis]}
    logits, ponder, traces = traced(loaded.model, features)
    scores = _scores(logits[0], target)
    tokens = token_names(problem.vocabularies["targets"], target)
    answer = make_side("decoder", "Answer", tokens, ponder["decoder"], traces["decoder"], np.exp(scores))
    sides = {"encoder": _input_side(problem, source, ponder, traces), "decoder": answer}
    return _explanation(problem, target, scores.sum(), sides, traces)


def _of_continuation(loaded, prompt, target):
    problem = loaded.problem
    ids = np.concatenate([prompt, target])
    refuse_long(len(ids), "the text with its continuation")
    logits, ponder, traces = traced(loaded.model, {"targets": ids[np.newaxis]})
    scores = _scores(logits[0], ids)
    tokens = token_names(problem.vocabularies["targets"], ids)
    side = make_side("decoder", "Text", tokens, ponder["decoder"], traces["decoder"], np.exp(scores), len(prompt))
    return _explanation(problem, target, scores[len(prompt) :].sum(), {"decoder": side}, traces)


def _input_side(problem, source, ponder, traces):
    names = sentence_names if source.ndim == 2 else token_names
    tokens = names(problem.vocabularies["inputs"], source)
    return make_side("encoder", "Input", tokens, ponder["encoder"], traces["encoder"])


def _explanation(problem, answer, score, sides, traces, classes=()):
    """The part of an `Explanation` that differs between kinds of models."""
    return Explanation(
        text="",
        answer=problem.decode_target(answer),
        chosen=True,
        score=float(score) + 0.0,  # no -0.0
        classes=list(classes),
        sides=sides,
        attention=attention_maps(traces),
        about=[],
        notes=[],
        threshold=1.0,
        recurrent=all(side.ponder_times is not None for side in sides.values()),
    )


def _scores(logits, ids):
    """Returns the log-probability [N] of each of ids [N] under logits [N, V]."""
    return _log_softmax(logits)[np.arange(len(ids)), ids]


def _log_softmax(logits):
    import tensorflow as tf

    scores = tf.nn.log_softmax(tf.cast(logits, tf.float32)).numpy()
    if not np.isfinite(scores).all():
        raise UserError(NOT_FINITE)
    return scores


def _about(loaded, found):
    """Returns what model, run and checkpoint a page is about: pairs of text."""
    import ut_keras

    hparams, problem = loaded.hparams, loaded.problem
    limit = max(side.limit for side in found.sides.values())
    if not found.recurrent:
        depth = f"{limit} different layers, no recurrence"
    elif hparams.recurrence_type == "act":
        depth = f"halting {hparams.act_type}, at most {limit} steps"
    else:
        depth = f"no halting, always {limit} steps"
    changed = {name: value for name, value in problem.args.items() if value != problem.arguments[name]}
    arguments = ", ".join(f"{name}={value}" for name, value in changed.items())
    weights = [loaded.checkpoint or "", "" if loaded.step is None else f"training step {loaded.step:,}"]
    return [
        ("problem", f"{problem.name} ({arguments})" if arguments else problem.name),
        ("model", f"{hparams.model}, {loaded.model.count_params():,} parameters"),
        ("depth", f"{depth}; {hparams.num_heads} heads"),
        ("weights", ", ".join(part for part in weights if part)),
        ("run", str(loaded.output_dir or "")),
        ("program", f"ut_keras {ut_keras.__version__}"),
    ]
