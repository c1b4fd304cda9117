"""An export behind REST and gRPC, as TensorFlow Serving speaks them, and many clients at once."""

import base64
import concurrent.futures
import re

import numpy as np
import pytest

import trainer
from tests.trainer import tfs_process
from tests.trainer.saved_runs import STRINGS, algorithmic_run
from trainer.export import export

NAME = "reverse"
BATCHING = "max_batch_size { value: 16 } batch_timeout_micros { value: 2000 } num_batch_threads { value: 2 }"

pytestmark = pytest.mark.slow  # a server with a TensorFlow of its own

if tfs_process.missing():
    pytest.skip(tfs_process.missing(), allow_module_level=True)

import grpc  # noqa: E402
from tensorflow_serving.apis.get_model_status_pb2 import ModelVersionStatus  # noqa: E402

from tests.trainer.tfs_client import Grpc, Rest  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "reverse"
    algorithmic_run(path, recurrence_type="act", act_max_steps=3)
    return trainer.load(path)


@pytest.fixture(scope="module")
def expected(run):
    """{line: its answer}, in the words of `decode`."""
    lines = [*STRINGS, "12345", "9" * 30]
    return dict(zip(lines, run.generate(lines), strict=True))


@pytest.fixture(scope="module")
def served(run, tmp_path_factory):
    """(server, Rest, Grpc) over one exported version, number 1."""
    base = tmp_path_factory.mktemp("models") / NAME
    export(run, base)
    with tfs_process.running(base, NAME, "--poll_seconds=0.1") as server:
        client = Grpc(server.grpc_port, NAME)
        yield server, Rest(server.rest_port, NAME), client
        client.close()


def test_warm_up_requests_ran_before_the_version_was_available(served):
    assert served[0].said[0]["warmup_requests"] == 3


def test_rows_are_answered_by_rows(served, expected):
    found = served[1].predict(list(expected))
    assert [row["outputs"] for row in found] == list(expected.values())
    assert {key for row in found for key in row} == {"outputs", "scores", "ponder_times"}
    assert any(expected.values()), "an untrained model that answers nothing tests nothing"


def test_columns_are_answered_by_columns(served, expected):
    for body in ({"inputs": list(expected)}, {"inputs": {"inputs": list(expected)}}):
        status, answer = served[1].call(":predict", body)
        assert status == 200
        assert answer["outputs"]["outputs"] == list(expected.values())
        assert np.shape(answer["outputs"]["scores"]) == (len(expected),)
        assert np.shape(answer["outputs"]["ponder_times"]) == (len(expected), 31)


def test_rows_may_be_named_and_base64(served, expected):
    coded = [{"b64": base64.b64encode(line.encode()).decode()} for line in expected]
    assert served[1].predict(coded) == served[1].predict([{"inputs": line} for line in expected])


def test_grpc_and_rest_give_the_same(served, expected):
    version, found = served[2].predict(list(expected))
    rows = served[1].predict(list(expected))
    assert version == 1
    assert [text.decode() for text in found["outputs"]] == list(expected.values())
    np.testing.assert_allclose(found["scores"], [row["scores"] for row in rows], rtol=1e-6)
    np.testing.assert_array_equal(found["ponder_times"], [row["ponder_times"] for row in rows])


def test_grpc_gives_the_outputs_that_are_asked_for(served):
    assert set(served[2].predict(["12"], wanted=["scores"])[1]) == {"scores"}


def test_metadata_name_inputs_and_outputs(served):
    version, signatures = served[2].metadata()
    signature = signatures["serving_default"]
    assert version == 1
    assert list(signature.inputs) == ["inputs"]
    assert set(signature.outputs) == {"outputs", "scores", "ponder_times"}
    status, answer = served[1].call("/versions/1/metadata")
    assert status == 200
    assert answer["model_spec"] == {"name": NAME, "version": "1", "signature_name": ""}
    named = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert named["inputs"]["inputs"]["dtype"] == "DT_STRING"
    assert named["outputs"].keys() == {"outputs", "scores", "ponder_times"}


def test_status_says_available(served):
    assert served[2].status()[1] == ModelVersionStatus.AVAILABLE
    status, answer = served[1].call()
    assert status == 200
    row = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert answer == {"model_version_status": [row]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "JSON Parse error"),
        (b"", "JSON Parse error"),
        (b'{"instances": ["\\ud800"]}', "surrogates not allowed"),
        ([1], "Is not object"),
        ({}, "one of 'inputs' or 'instances'"),
        ({"instances": ["1"], "inputs": ["1"]}, "and not both"),
        ({"instances": []}, "No values in 'instances'"),
        ({"instances": "12"}, "to be an list/array"),
        ({"instances": [12]}, "is not of expected type: string"),
        ({"instances": [["12"]]}, r"the shape \[1, 1\], expected \[-1\]"),
        ({"inputs": "12"}, r"the shape \[\], expected \[-1\]"),
        ({"instances": [{"text": "12"}]}, "keys must be equal to: inputs"),
        ({"instances": ["12"], "signature_name": "other"}, "not found in signature def"),
    ],
)
def test_wrong_request_is_refused_with_a_message(served, body, message):
    status, answer = served[1].call(":predict", body)
    assert status == 400
    assert re.search(message, answer["error"])


def test_unknown_model_version_and_path_are_refused(served):
    rest = served[1]
    assert rest.call("/versions/7:predict", {"instances": ["1"]})[0] == 404
    assert rest.call("x:predict", {"instances": ["1"]})[0] == 404
    assert rest.call("x")[0] == 404
    assert rest.call(":answer", {"instances": ["1"]})[0] == 400


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"inputs": [12]}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"inputs": "12"}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"text": ["12"]}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"signature": "other"}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"wanted": ["other"]}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"version": 7}, grpc.StatusCode.NOT_FOUND),
        ({"name": "other"}, grpc.StatusCode.NOT_FOUND),
    ],
)
def test_wrong_grpc_request_is_refused_with_a_message(served, arguments, code):
    with pytest.raises(grpc.RpcError) as error:
        served[2].predict(["12"], **arguments)
    assert error.value.code() == code
    assert error.value.details()


def test_line_that_cannot_be_encoded_takes_only_its_own_answer(served, expected):
    rows = served[1].predict(["Goodbye!", "314", {"b64": base64.b64encode(b"\xff\xfe").decode()}])
    assert [row["outputs"] for row in rows] == ["", expected["314"], ""]


@pytest.mark.slow  # a server of its own
def test_new_version_is_warmed_up_and_takes_the_place_of_the_old(run, tmp_path, expected):
    export(run, tmp_path)
    with tfs_process.running(tmp_path, NAME, "--poll_seconds=0.1") as server:
        client, rest = Grpc(server.grpc_port, NAME), Rest(server.rest_port, NAME)
        assert server.said == [{**server.said[0], "version": 1, "warmup_requests": 3}]
        assert client.predict(["314"])[0] == 1
        export(run, tmp_path)
        assert server.next() == {"version": 2, "warmup_requests": 3}
        version, found = client.predict(["314"])
        assert (version, found["outputs"][0].decode()) == (2, expected["314"])
        assert client.status() == {1: ModelVersionStatus.END, 2: ModelVersionStatus.AVAILABLE}
        assert rest.call("/versions/1:predict", {"instances": ["1"]})[0] == 404
        assert rest.call("/versions/2:predict", {"instances": ["1"]})[0] == 200
        client.close()


@pytest.mark.slow
@pytest.mark.parametrize("batching", [None, BATCHING], ids=["apart", "in batches"])
def test_many_clients_at_once_get_the_answers_of_one(run, expected, tmp_path, batching):
    export(run, tmp_path / NAME)
    flags = []
    if batching:
        (tmp_path / "batching.txt").write_text(batching)
        flags = [f"--batching_parameters_file={tmp_path / 'batching.txt'}"]
    lines = list(expected)
    with tfs_process.running(tmp_path / NAME, NAME, *flags) as server:
        client, rest = Grpc(server.grpc_port, NAME), Rest(server.rest_port, NAME)

        def ask(number):
            chosen = [lines[(number + i) % len(lines)] for i in range(1 + number % 3)]
            if number % 2:
                found = [row["outputs"] for row in rest.predict(chosen)]
            else:
                found = [text.decode() for text in client.predict(chosen)[1]["outputs"]]
            return found == [expected[line] for line in chosen]

        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            right = list(clients.map(ask, range(200)))
        client.close()
    assert right == [True] * 200
