"""Warm-up requests: lines for every problem, in a file that the package of TensorFlow Serving's messages reads."""

import importlib.util

import pytest
import tensorflow as tf

import problems
from tests.trainer import served_text
from tests.trainer.saved_runs import algorithmic_run, babi_run
from trainer.export import export
from trainer.loaded import load
from trainer.warmup import example_lines, prediction_log, warmup_batches
from ut_keras import registry

needs_messages = pytest.mark.skipif(
    not importlib.util.find_spec("tensorflow_serving"), reason="tensorflow-serving-api is not installed"
)


@pytest.mark.parametrize("name", [name for name in registry.problems.names() if problems.get(name).vocabularies])
def test_lines_are_made_up_that_the_problem_reads(name):
    problem = problems.get(name)
    lines = example_lines(problem)
    lengths = [len(problem.encode_input(line)) for line in lines]
    assert lengths == sorted(lengths)
    assert lengths[0] <= 3
    assert lengths[-1] >= 32


def test_stories_are_made_up_of_sentences_with_a_question_last(tmp_path):
    babi_run(tmp_path / "run")
    lines = example_lines(problems.load(tmp_path / "run"))
    assert lines[2].count(".") == 3
    assert all(line.endswith("?") for line in lines)


def test_subwords_that_are_made_up_are_readable_text(tmp_path):
    served_text.prepared(tmp_path).save(tmp_path)
    lines = example_lines(problems.load(tmp_path))
    assert len(lines) >= 5
    assert all(line.isprintable() and "\ufffd" not in line for line in lines)


def test_lines_are_the_dev_splits_where_it_is_prepared(tmp_path):
    problem = served_text.prepared(tmp_path)
    lines = example_lines(problem)
    known = [problem.decode_input(problem.split("dev").example(row)["inputs"]) for row in range(8)]
    assert set(lines) <= set(known)
    assert 3 <= len(lines) <= 7
    assert len(lines[0]) < len(lines[-1])


def test_requests_hold_one_line_and_many_and_an_empty_one():
    short, long, all_ = warmup_batches(problems.get("algorithmic_reverse_decimal40"))
    assert len(short) == len(long) == 1
    assert len(short[0]) < len(long[0])
    assert all_[-1] == ""
    assert all_[0] == short[0] and all_[-2] == long[0]


@needs_messages
@pytest.mark.parametrize("size", [0, 100, 127, 128, 300, 20_000, 3_000_000])
def test_encoding_is_that_of_the_real_messages(size):
    from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

    tensor = tf.make_tensor_proto(["x" * size])
    found = PredictionLog.FromString(prediction_log("serving_default", tensor.SerializeToString()))
    expected = PredictionLog()
    expected.predict_log.request.model_spec.signature_name = "serving_default"
    expected.predict_log.request.inputs["inputs"].CopyFrom(tensor)
    assert found == expected
    assert prediction_log("serving_default", tensor.SerializeToString()) == expected.SerializeToString()


@pytest.mark.slow  # the stand-in server does the same, by default, where it starts (test_serving_protocols.py)
@needs_messages
def test_requests_of_an_export_parse_and_run(tmp_path):
    from tests.trainer.tfs_model import warmup_requests

    algorithmic_run(tmp_path / "run", num_rec_steps=1)
    loaded = load(tmp_path / "run")
    directory = export(loaded, tmp_path / "export")
    assert [path.name for path in (directory / "assets.extra").iterdir()] == ["tf_serving_warmup_requests"]
    requests = warmup_requests(directory)
    serve = tf.saved_model.load(str(directory)).signatures["serving_default"]
    batches = warmup_batches(loaded.problem)
    assert len(requests) == len(batches) == 3
    for request, lines in zip(requests, batches, strict=True):
        assert request.model_spec.signature_name == "serving_default"
        (name,) = request.inputs
        given = tf.make_ndarray(request.inputs[name])
        assert (name, [text.decode() for text in given]) == ("inputs", lines)
        outputs = serve(inputs=tf.constant(given))["outputs"]
        assert [text.decode() for text in outputs.numpy()] == loaded.generate(lines)
