"""Warm-up requests of an export: a model server runs them while it loads a version, so that no client waits for what
TensorFlow sets up at first use.

The file is a TFRecord of `tensorflow.serving.PredictionLog` messages. These are put together here from five fields,
whose numbers a protocol buffer never changes, and not with the package tensorflow-serving-api, which is an extra: else
an export would depend on what happens to be installed where it is made. The tests read the file with that package.
"""

import pathlib

import numpy as np

from problems.vocabulary import EOS
from trainer.report import parted
from ut_keras.errors import UserError

FILE = pathlib.Path("assets.extra") / "tf_serving_warmup_requests"
_LENGTHS = (1, 2, 4, 8, 16, 32, 64)  # ids (sentences) of the lines that are made up
_SAMPLE = 200  # entries of a vocabulary that these are made of
_TRIES = 8


def write_warmup(directory, batches, signature):
    """Writes one request for each of `batches` (lists of lines) into the version's directory.

    Args:
        directory: of the SavedModel.
        batches: list of lists of str.
        signature: name of the signature, whose input is called "inputs".
    """
    import tensorflow as tf

    path = pathlib.Path(directory) / FILE
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for lines in batches:
            tensor = tf.make_tensor_proto([line.encode() for line in lines], tf.string, [len(lines)])
            writer.write(prediction_log(signature, tensor.SerializeToString()))


def prediction_log(signature, tensor):
    """Returns a serialised PredictionLog of one PredictRequest; no model name, as a server has its own for the model.

    Args:
        signature: name of the signature.
        tensor: serialised TensorProto of its input "inputs".
    """
    model_spec = _field(3, signature.encode())  # ModelSpec.signature_name
    entry = _field(1, b"inputs") + _field(2, tensor)  # a map is a list of pairs
    request = _field(1, model_spec) + _field(2, entry)  # PredictRequest.model_spec, .inputs
    return _field(6, _field(1, request))  # PredictionLog.predict_log, PredictLog.request


def _field(number, content):
    """Returns a field of bytes: its number with the wire type 2, its size in groups of 7 bits, its content."""
    size, left = b"", len(content)
    while left > 127:
        size += bytes([left & 127 | 128])
        left >>= 7
    return bytes([number << 3 | 2]) + size + bytes([left]) + content


def warmup_batches(problem):
    """Returns the lines of each request: the shortest alone, the longest alone, all of them with an empty one."""
    lines = example_lines(problem)
    return [lines[:1], lines[-1:], [*lines, ""]] if lines else [[""]]


def example_lines(problem, count=7):
    """Returns lines that `problem` can encode, shortest first: of its dev split where it is prepared, else made up.

    Args:
        problem: Problem.
        count: the most lines.
    """
    found = _of_split(problem, count) if problem.available else _made_up(problem)
    lines = dict.fromkeys(line for line in found if _encoded(problem, line) is not None)
    return list(lines)[:count]


def _of_split(problem, count):
    split = problem.split("dev")
    order = np.argsort(split.lengths[:, 0], kind="stable")
    for place in np.linspace(0, len(order) - 1, count).astype(int):
        example = split.example(int(order[place]))
        if not problem.features.input_vocabulary_size:
            example = parted(example["targets"], problem.scored)
        yield problem.decode_input(example["inputs"])


def _made_up(problem):
    """Yields lines of random entries of the vocabulary: in form, if not in sense, what the problem reads."""
    rng = np.random.default_rng(0)
    width = problem.words_per_sentence
    usable = _usable_ids(problem, rng)
    for length in _LENGTHS if usable else ():
        shape = [length, width] if width else [length]
        for _ in range(_TRIES):
            line = problem.decode_input(rng.choice(usable, shape))
            if _encoded(problem, line) is not None:
                yield line
                break


def _usable_ids(problem, rng):
    """Returns those ids, of a sample, that are written as a line which is read as that id again."""
    vocabulary = problem.vocabularies["inputs"] or problem.vocabularies["targets"]
    ids = np.arange(vocabulary.reserved, vocabulary.size)
    width = problem.words_per_sentence
    usable = []
    for number in rng.permutation(ids)[:_SAMPLE].tolist():
        ids = np.pad([number], (0, width - 1))[np.newaxis] if width else np.array([number])
        text = problem.decode_input(ids)
        encoded = _encoded(problem, text) if text.isprintable() else None
        if encoded is not None and encoded[encoded > EOS].tolist() == [number]:
            usable.append(number)
    return usable


def _encoded(problem, line):
    """Returns the ids of a line, or None where it has none or cannot be encoded."""
    try:
        ids = np.asarray(problem.encode_input(line))
    except UserError:
        return None
    return ids if ids.size else None
