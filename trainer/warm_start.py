"""Starting from the weights of another run: those that fit by name and shape.

A weight's name in a checkpoint is its place in the model and its path, "021/body/rec_layer/self_attention/q". The
place counts for nothing here. Encoder and decoder have layers of equal paths: in a model with both, the encoder's
come first, and are half of them.
"""

import collections
import sys

from trainer.checkpoints import checkpoint_at, find_checkpoint
from trainer.named_tensors import DamagedError, Reader, model_variables
from trainer.run_dir import RunDir
from ut_keras.errors import UserError

_SHOWN = 8  # names in a message


def warm_start(model, source, problem=None):
    """Gives `model` the weights that fit, and says on standard error how many they were and which did not fit.

    Args:
        model: a built model.
        source: the directory of a run (its best weights are taken), or the path of a checkpoint; of one that holds
            moving averages of the weights, these are taken.
        problem: the `Problem` of the model; where `source` is a run, it is said which of its vocabularies only has
            the size of one there.

    Raises:
        UserError: no weight fits, or there is no such checkpoint, or it is damaged.
    """
    path = find_checkpoint(RunDir.open(source), "best") if RunDir.exists(source) else checkpoint_at(source)
    try:
        reader = Reader(path)
    except DamagedError as error:
        raise UserError(f"--warm_start_from={source}: {error}") from None
    names = reader.model_names()
    there = sorted(names, key=lambda key: int(key.partition("/")[0]))
    variables = model_variables(model)
    ours, theirs = _names(list(variables), there), _names(there, list(variables))
    sources = {name: names[key] for key, name in theirs.items()}
    fitting, missing, other, used = [], [], [], set()
    for key, name in ours.items():
        shape = variables[key].shape.as_list()
        if name not in sources:
            missing.append(_shown(name))
        elif reader.shapes[sources[name]] != shape:
            other.append(f"{_shown(name)} {reader.shapes[sources[name]]} there, {shape} here")
            used.add(name)
        else:
            fitting.append((variables[key], sources[name]))
            used.add(name)
    if not fitting:
        raise UserError(
            f"--warm_start_from={source}: none of its {len(there)} weights fits this model by name and shape"
        )
    try:
        values = [(variable, reader.tensor(name)) for variable, name in fitting]
    except DamagedError as error:
        raise UserError(f"--warm_start_from={source}: {error}") from None
    for variable, value in values:
        variable.assign(value)
    print(f"took {len(fitting)} of {len(variables)} weights from {path}", file=sys.stderr, flush=True)
    unused = [_shown(name) for name in sources if name not in used]
    for what, names in (("missing there", missing), ("of another shape", other), ("unused", unused)):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            print(f"  {len(names)} {what}: {'; '.join(names[:_SHOWN])}{more}", file=sys.stderr, flush=True)
    if problem is not None and RunDir.exists(source):
        _warn_of_other_ids(problem.vocabularies, RunDir.open(source).problem.vocabularies)


def _warn_of_other_ids(ours, theirs):
    """Says which of our vocabularies gives the ids of a table of equal size another meaning than it had there."""
    theirs = [vocabulary for vocabulary in theirs.values() if vocabulary is not None]
    for feature, vocabulary in ours.items():
        if vocabulary is not None and vocabulary not in theirs and vocabulary.size in [other.size for other in theirs]:
            print(
                f"warning: the vocabulary of the {feature} is another one than there, of the same size: "
                "the rows of its table come from other entries",
                file=sys.stderr,
                flush=True,
            )


def _names(keys, others):
    """Returns {key: (side, path, number)} of one model's keys, comparable with those of `others`' model.

    `number` counts the weights of equal path on a side. The side is "" where neither model has both: an encoder
    alone may take what a language model has learned.
    """
    paths = [_path(key) for key in keys]
    counts, seen, names = collections.Counter(paths), collections.Counter(), {}
    for key, path in zip(keys, paths, strict=True):
        side = ""
        if path.startswith("body/") and (_has_both(keys) or _has_both(others)):
            side = _side(keys)
            if side == "both":
                decoder = "encdec_attention" in path or seen[path] >= counts[path] // 2
                side = "decoder" if decoder else "encoder"
        number = seen[path]
        seen[path] += 1
        if side == "decoder" and _has_both(keys) and "encdec_attention" not in path:
            number -= counts[path] // 2
        names[key] = (side, path, number)
    return names


def _path(key):
    return key.partition("/")[2]


def _has_both(keys):
    return any("encdec_attention" in key for key in keys)


def _side(keys):
    """Returns which side's weights the keys of a model under "body/" are."""
    if _has_both(keys):
        return "both"
    language = all(_path(key).startswith(("embedding/", "softmax/", "body/")) for key in keys)
    return "decoder" if language else "encoder"


def _shown(name):
    side, path, number = name
    return "/".join(part for part in (side, path) if part) + (f" ({number + 1})" if number else "")
