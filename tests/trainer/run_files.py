"""What a run has left in its directory, and how far two runs are apart."""

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

from trainer.run_dir import RunDir


def records(path):
    """Returns the lines of metrics.jsonl without the rates, which are those of a process."""
    lines = RunDir.open(path).metrics()
    return [{name: value for name, value in line.items() if not name.endswith("_per_second")} for line in lines]


def losses(path):
    """Returns {step: loss} of metrics.jsonl."""
    return {line["step"]: line["train/loss"] for line in records(path) if "train/loss" in line}


def saved(path, directory="checkpoints"):
    """Returns {name: array} of the last checkpoint: weights, averages, slots, loss scale, step."""
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(path / directory)))
    types = reader.get_variable_to_dtype_map()
    names = [name for name in types if "save_counter" not in name and types[name] != tf.string]
    return {name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE"): reader.get_tensor(name) for name in names}


def distance(first, second):
    """Returns the largest difference of two {name: array} with the same names; NaN where one is no number."""
    assert first.keys() == second.keys()
    return max(float(np.abs(first[name] - second[name]).max()) for name in first)


def curves(path):
    """Returns {tag: [(step, value)]}, all that TensorBoard reads of a run but the texts; rates left out."""
    events = EventAccumulator(str(path / "tb"), size_guidance={"tensors": 0}).Reload()
    tags = [tag for tag in events.Tags()["tensors"] if not tag.endswith("_per_second")]
    points = {tag: [(one.step, make_ndarray(one.tensor_proto)) for one in events.Tensors(tag)] for tag in tags}
    return {tag: values for tag, values in points.items() if values[0][1].dtype.kind == "f"}
