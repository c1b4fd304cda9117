"""A profile of some training steps."""

import contextlib

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from trainer.profiling import Profile, missed
from trainer.summaries import Summaries
from ut_keras.errors import UserError


@pytest.fixture
def profiled(monkeypatch):
    """A function of (window, steps before each call) that returns what was started, marked and stopped."""
    events = []

    class Trace:
        def __init__(self, name, step_num, _r):
            self._step = step_num

        def __enter__(self):
            events.append(self._step)

        def __exit__(self, *_):
            events.append(-self._step)

    monkeypatch.setattr(tf.profiler.experimental, "start", lambda directory: events.append("start"))
    monkeypatch.setattr(tf.profiler.experimental, "stop", lambda save=True: events.append("stop" if save else "drop"))
    monkeypatch.setattr(tf.profiler.experimental, "Trace", Trace)

    def run(window, steps, error=None):
        with contextlib.suppress(KeyError), Profile("tb", window) as profile:
            for step in steps:
                profile.update(step)
            if error:
                raise error
        return events

    return run


def test_the_updates_of_the_window_are_profiled(profiled):
    assert profiled((3, 2), range(6)) == ["start", 3, -3, 4, -4, "stop"]


def test_calls_of_several_updates_are_profiled_as_such(profiled):
    assert profiled((3, 4), [0, 1, 2, 4, 6]) == ["start", 3, -3, 5, -5, "stop"]


def test_the_end_of_training_ends_the_profile(profiled):
    assert profiled((3, 100), range(3)) == ["start", 3, -3, "stop"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [(0, None), (11, None), (12, "the run is at step 12 already"), (20, "the run is at step 20 already")],
)
def test_a_window_that_is_over_is_missed(step, reason):
    assert missed((11, 2), step, 20) == reason


def test_a_window_behind_the_end_is_missed():
    assert missed((21, 2), 0, 20) == "the run ends at step 20"
    assert missed((20, 2), 0, 20) is None


def test_an_error_of_training_is_not_hidden_by_the_profile(profiled):
    assert profiled((3, 100), range(3), KeyError()) == ["start", 3, -3, "drop"]


def test_a_run_that_goes_on_inside_of_the_window_profiles_the_rest(profiled):
    assert profiled((3, 4), [4, 5, 6, 7]) == ["start", 5, -5, 6, -6, "stop"]


def test_a_run_that_goes_on_behind_the_window_profiles_nothing(profiled):
    assert profiled((3, 4), [6, 7]) == []


def test_the_profile_holds_the_operations_of_its_steps_and_tensorboard_reads_the_curves(tmp_path):
    multiply = tf.function(lambda x: tf.linalg.matmul(x, x))
    with Profile(tmp_path, (3, 2)) as profile, Summaries(tmp_path) as summaries:
        for step in range(6):
            profile.update(step)
            multiply(tf.ones([8, 8]))
            summaries.write(step + 1, {"train/loss": 1.0}, {})
    (file,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    host = next(plane for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes if plane.name == "/host:CPU")
    names = [host.event_metadata[event.metadata_id].name for line in host.lines for event in line.events]
    assert names.count("train") == 2
    assert sum("MatMul" in name for name in names) == 2
    assert len(EventAccumulator(str(tmp_path)).Reload().Tensors("train/loss")) == 6


def test_a_profile_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "tb").write_text("a file")
    profile = Profile(tmp_path / "tb", (1, 1))
    profile.update(0)
    with pytest.raises(UserError, match=r"^--profile: the profile in .*tb cannot be written: .*not a directory$"):
        profile.update(1)
    profile.close()
