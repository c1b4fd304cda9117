"""What TensorBoard shows of a run.

Shapes: T steps of the recurrence.
"""

import numpy as np
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalar
from tensorboard.plugins.histogram import metadata as histogram
from tensorboard.plugins.scalar import metadata as scalar
from tensorboard.plugins.text import metadata as text
from tensorboard.util.tensor_util import make_tensor_proto

from trainer.event_file import EventFile


class Summaries:
    """Writes a run's numbers for TensorBoard; a context manager.

    A resumed run continues its curves: points behind `step`, of steps that were lost with a process and are made
    again, are superseded.

    | tab | what is there |
    |---|---|
    | Scalars | every number under its name in metrics.jsonl, and `train_halting_probability/<side>/step_<t>` |
    | Histograms | `train_ponder_time/<side>`: positions by the number of steps they took, one bin for each number |
    | Custom scalars | training beside development, and by side the halting probability after each step in one chart |
    | Text | the hyperparameters |

    Args:
        directory: where the events go, `<run directory>/tb`.
        step: the step that the run goes on from; 0 for a new one.

    Raises:
        UserError: a file cannot be written; also every method.
    """

    def __init__(self, directory, step=0):
        self._step = step
        self._events = EventFile(directory, step + 1)
        self._laid_out = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def write(self, step, values, vectors=None):
        """Writes what is known after a step; it is in the file when this returns.

        Args:
            step: updates made.
            values: {name: number}, as for metrics.jsonl.
            vectors: `Interval.vectors()`, or None where `values` are not of training.
        """
        summary = summary_pb2.Summary(value=[_scalar(name, value) for name, value in values.items()])
        for name, vector in (vectors or {}).items():
            tag = f"train_{name}"  # a group of charts by itself, behind the group "train"
            if name.startswith("ponder_time/"):
                summary.value.append(_counts(tag, vector))
            else:
                summary.value.extend(_scalar(f"{tag}/step_{t + 1}", value) for t, value in enumerate(vector))
        if vectors is not None and not self._laid_out:  # which sides there are is known from here on
            summary.value.append(_layout([name.partition("/")[2] for name in vectors if name.startswith("ponder_")]))
            self._laid_out = True
        self._events.write(step, summary)

    def hparams(self, values):
        """Writes the hyperparameters, a dict, as a table of text."""
        # As code: the stars of "constant*linear_warmup*rsqrt_decay" would print it in italics.
        rows = "".join(f"| {name} | `{value}` |\n" for name, value in values.items())
        tensor = make_tensor_proto(f"| hyperparameter | value |\n|---|---|\n{rows}", dtype=np.object_)
        value = summary_pb2.Summary.Value(
            tag="hparams", tensor=tensor, metadata=text.create_summary_metadata(None, "as in hparams.json")
        )
        self._events.write(self._step, summary_pb2.Summary(value=[value]))

    def close(self):
        """Closes the file; does nothing the second time."""
        self._events.close()


def _scalar(name, value):
    tensor = make_tensor_proto(np.float32(value))
    return summary_pb2.Summary.Value(tag=name, tensor=tensor, metadata=scalar.create_summary_metadata(None, None))


def _counts(name, counts):
    """Returns the histogram of counts [T + 1] of the numbers 0..T: each number has a bin of its own, from 1 on."""
    numbers = np.arange(len(counts))
    bins = np.stack([numbers - 0.5, numbers + 0.5, counts], axis=1)
    if not counts[0]:  # a real position takes a step at least
        bins = bins[1:]
    return summary_pb2.Summary.Value(
        tag=name,
        tensor=make_tensor_proto(bins.astype(np.float64)),
        metadata=histogram.create_summary_metadata(None, "positions by the number of steps they took"),
    )


def _layout(sides):
    """Returns the charts of the tab Custom scalars: tags are regular expressions."""

    def chart(title, *tags):
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))

    fit = [
        chart("cross-entropy per token", "^train/cross_entropy$", "^dev/(teacher_forced/)?log_perplexity$"),
        chart("accuracy", "^train/(sequence_)?accuracy$", "^dev/(teacher_forced/)?(sequence_)?accuracy$"),
    ]
    categories = [layout_pb2.Category(title="training and development", chart=fit)]
    for side in sides:
        charts = [
            chart(f"halting probability after each step, {side}", f"^train_halting_probability/{side}/"),
            chart(f"ponder time, {side}", f"^(train|dev)/ponder_time/{side}/"),
        ]
        categories.append(layout_pb2.Category(title=f"halting, {side}", chart=charts))
    layout = layout_pb2.Layout(category=categories)
    return summary_pb2.Summary.Value(
        tag=custom_scalar.CONFIG_SUMMARY_TAG,
        tensor=make_tensor_proto(layout.SerializeToString(), dtype=np.object_),
        metadata=custom_scalar.create_summary_metadata(),
    )
