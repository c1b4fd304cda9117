"""What TensorBoard reads of a run, by its own reader."""

import subprocess
import sys

import numpy as np
import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.util.tensor_util import make_ndarray

from trainer import event_file
from trainer.summaries import Summaries
from ut_keras.errors import UserError

VECTORS = {"ponder_time/encoder": np.array([0.0, 3.0, 5.0]), "halting_probability/encoder": np.array([0.25, 1.0])}


def points(directory, tag):
    """Returns [(step, value)] that TensorBoard shows of a tag."""
    return [(event.step, make_ndarray(event.tensor_proto)) for event in read(directory).Tensors(tag)]


def read(directory):
    return EventAccumulator(str(directory)).Reload()


def plugin_of(directory, tag):
    return read(directory).SummaryMetadata(tag).plugin_data.plugin_name


def test_every_number_is_a_curve_under_its_own_name(tmp_path):
    with Summaries(tmp_path / "tb") as summaries:
        summaries.write(10, {"train/loss": 2.5, "train/skipped": 3}, {})
        summaries.write(20, {"train/loss": 1.5}, {})
        summaries.write(20, {"dev/teacher_forced/accuracy": 0.5})
    assert points(tmp_path / "tb", "train/loss") == [(10, 2.5), (20, 1.5)]
    assert points(tmp_path / "tb", "train/skipped") == [(10, 3.0)]
    assert points(tmp_path / "tb", "dev/teacher_forced/accuracy") == [(20, 0.5)]
    assert plugin_of(tmp_path / "tb", "train/loss") == "scalars"


def test_what_was_written_can_be_read_at_once(tmp_path):
    summaries = Summaries(tmp_path)
    summaries.write(1, {"train/loss": 2.5}, {})
    assert points(tmp_path, "train/loss") == [(1, 2.5)]
    summaries.close()


def test_each_number_of_steps_has_a_bin_of_its_own(tmp_path):
    with Summaries(tmp_path) as summaries:
        summaries.write(1, {}, VECTORS)
        summaries.write(2, {}, {**VECTORS, "ponder_time/encoder": np.array([2.0, 3.0, 0.0])})
    (_, first), (_, second) = points(tmp_path, "train_ponder_time/encoder")
    assert first.tolist() == [[0.5, 1.5, 3.0], [1.5, 2.5, 5.0]]
    assert second.tolist() == [[-0.5, 0.5, 2.0], [0.5, 1.5, 3.0], [1.5, 2.5, 0.0]]
    assert plugin_of(tmp_path, "train_ponder_time/encoder") == "histograms"


def test_the_halting_probability_has_a_curve_for_each_step(tmp_path):
    with Summaries(tmp_path) as summaries:
        summaries.write(7, {}, VECTORS)
    assert points(tmp_path, "train_halting_probability/encoder/step_1") == [(7, 0.25)]
    assert points(tmp_path, "train_halting_probability/encoder/step_2") == [(7, 1.0)]


def test_the_charts_of_several_curves_are_there_once_with_the_sides_that_halt(tmp_path):
    with Summaries(tmp_path) as summaries:
        summaries.write(4, {"dev/accuracy": 0.5})
        for step in (5, 6):
            summaries.write(step, {}, VECTORS)
    ((step, layout),) = points(tmp_path, "custom_scalars__config__")
    titles = [category.title for category in layout_pb2.Layout.FromString(layout.item()).category]
    assert (step, titles) == (5, ["training and development", "halting, encoder"])


def test_hyperparameters_are_a_table_at_the_step_from_which_they_hold(tmp_path):
    with Summaries(tmp_path, 30) as summaries:
        summaries.hparams({"hidden_size": 64, "learning_rate_schedule": "a*b*c"})
    ((step, text),) = points(tmp_path, "hparams")
    assert step == 30
    assert text.item().decode().splitlines()[2:] == ["| hidden_size | `64` |", "| learning_rate_schedule | `a*b*c` |"]


def train(directory, first, last, loss):
    summaries = Summaries(directory, first)
    for step in range(first + 1, last + 1):
        summaries.write(step, {"train/loss": loss}, VECTORS)
    return summaries


def test_a_resumed_run_has_one_curve_without_the_steps_that_were_lost(tmp_path):
    """A regression test of U73: curves that begin again at 0, or run back and forth."""
    train(tmp_path, 0, 8, 1.0).close()  # killed after step 8, its last checkpoint is of step 5
    (killed,) = tmp_path.iterdir()
    with open(killed, "r+b") as file:
        file.truncate(killed.stat().st_size - 7)  # in the middle of a record
    train(tmp_path, 5, 10, 2.0).close()
    expected = [(step, 1.0) for step in range(1, 6)] + [(step, 2.0) for step in range(6, 11)]
    assert points(tmp_path, "train/loss") == expected
    assert [step for step, _ in points(tmp_path, "train_ponder_time/encoder")] == list(range(1, 11))


def test_steps_that_were_lost_are_gone_before_they_are_made_again(tmp_path):
    train(tmp_path, 0, 8, 1.0).close()
    train(tmp_path, 5, 6, 2.0).close()
    assert [step for step, _ in points(tmp_path, "train/loss")] == [1, 2, 3, 4, 5, 6]


def test_a_clock_that_was_set_back_does_not_put_the_new_file_before_the_old(tmp_path, monkeypatch):
    monkeypatch.setattr(event_file.time, "time", lambda: 2e9)
    train(tmp_path, 0, 8, 1.0).close()
    monkeypatch.setattr(event_file.time, "time", lambda: 1e9)
    train(tmp_path, 5, 6, 2.0).close()
    assert points(tmp_path, "train/loss")[4:] == [(5, 1.0), (6, 2.0)]


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "tb").write_text("a file")
    with pytest.raises(UserError, match=r"tb.* cannot be written: File exists"):
        Summaries(tmp_path / "tb")


FULL = """
import resource, sys
from trainer.summaries import Summaries
from ut_keras.errors import UserError
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
summaries = Summaries(sys.argv[1])
try:
    for step in range(1, 1000):
        summaries.write(step, {"train/loss": 1.0}, {})
except UserError as error:
    print(step, error)
summaries.close()
"""


def test_a_full_disk_is_one_line_and_what_was_written_before_can_be_read(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    step, message = done.stdout.split(maxsplit=1)
    assert message.count("\n") == 1
    assert "cannot be written: File too large; the checkpoints are as they were" in message
    assert len(points(tmp_path, "train/loss")) == int(step) - 1 > 3


def test_writing_does_not_need_tensorflow(tmp_path):
    code = (
        "import sys; from trainer.summaries import Summaries; Summaries(sys.argv[1]).write(1, {'a': 1.0}, {}); "
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=120)
