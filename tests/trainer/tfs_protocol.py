"""A stand-in for tensorflow_model_server: its REST and gRPC protocols on loopback, over the versions of a base path.

Made from the stubs of the PyPI package tensorflow-serving-api, so that a client for the real server can be tried
without it. It answers predict (rows and columns), metadata and status by REST, Predict, GetModelMetadata and
GetModelStatus by gRPC, runs warm-up requests, batches requests if told to, and takes up a new version.

    python -m tests.trainer.tfs_protocol BASE --model_name=NAME

Prints one line of JSON with its two ports when it is ready, and one for each further version. It ends when its
standard input does, or after --seconds.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import threading
import time
from concurrent import futures

import grpc
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tests.trainer import tfs_batching
from tests.trainer.tfs_model import BadRequestError, NotServedError, Versions
from tests.trainer.tfs_rest import RestHandler, RestServer

_THREADS = 32  # of gRPC; more than there are clients
_STATES = get_model_status_pb2.ModelVersionStatus.State


class Model:
    """A name with its versions; what both protocols ask.

    Args:
        name: the model's name.
        versions: `Versions`.
    """

    def __init__(self, name, versions):
        self.name = name
        self._versions = versions

    def version(self, name, number=None):
        """Returns what answers for a version (None: the current one); NotServedError for another name or version."""
        try:
            if name == self.name:
                return self._versions.get(number)
        except NotServedError:
            pass
        which = f"Latest({name})" if number is None else f"Specific({name}, {number})"
        raise NotServedError(f"Servable not found for request: {which}")

    def metadata(self, name, number=None):
        """Returns the GetModelMetadataResponse of a version."""
        version = self.version(name, number)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = self.name
        response.model_spec.version.value = version.number
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for key, signature in version.signatures.items():
            signatures.signature_def[key].CopyFrom(signature)
        response.metadata["signature_def"].Pack(signatures)
        return response

    def status(self, name, number=None):
        """Returns the GetModelStatusResponse of a version, or of all of them."""
        states = self._versions.states
        if name != self.name or number not in (None, *states):
            raise NotServedError(f"Could not find any versions of model {name}")
        response = get_model_status_pb2.GetModelStatusResponse()
        for known in sorted(states, reverse=True) if number is None else [number]:
            row = response.model_version_status.add(version=known, state=_STATES.Value(states[known]))
            row.status.SetInParent()  # OK, said in words
        return response


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """gRPC: Predict and GetModelMetadata of a `Model`."""

    def __init__(self, model):
        self._model = model

    def Predict(self, request, context):  # noqa: N802
        with _grpc_errors(context):
            spec = request.model_spec
            version = self._model.version(spec.name, _number(spec))
            feeds = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            found = version.run(spec.signature_name, feeds, request.output_filter)
            response = predict_pb2.PredictResponse()
            response.model_spec.name = spec.name
            response.model_spec.version.value = version.number
            response.model_spec.signature_name = spec.signature_name or "serving_default"
            for name, value in found.items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
            return response

    def GetModelMetadata(self, request, context):  # noqa: N802
        with _grpc_errors(context):
            return self._model.metadata(request.model_spec.name, _number(request.model_spec))


class ModelService(model_service_pb2_grpc.ModelServiceServicer):
    """gRPC: GetModelStatus of a `Model`."""

    def __init__(self, model):
        self._model = model

    def GetModelStatus(self, request, context):  # noqa: N802
        with _grpc_errors(context):
            return self._model.status(request.model_spec.name, _number(request.model_spec))


@contextlib.contextmanager
def _grpc_errors(context):
    """Ends a call with the status of the error that is raised inside."""
    try:
        yield
    except BadRequestError as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    except NotServedError as error:
        context.abort(grpc.StatusCode.NOT_FOUND, str(error))


def _number(spec):
    return spec.version.value if spec.HasField("version") else None


class Server:
    """Both protocols over one base path, on loopback.

    Args:
        base: directory of version directories.
        name: the model's name.
        batching: text of BatchingParameters; None: each request runs by itself.

    Attributes:
        rest_port, grpc_port: free ports that were taken.
        loaded: the `Version` that is served first; None where BASE has none yet.
        versions: `Versions`; its `poll` takes up a new version.
    """

    def __init__(self, base, name, batching=None):
        parameters = batching and tfs_batching.parse(batching)
        make = (lambda version: tfs_batching.Batched(version, parameters)) if parameters else (lambda version: version)
        self.versions = Versions(base, make)
        self.loaded = self.versions.poll()
        model = Model(name, self.versions)
        self._grpc = grpc.server(futures.ThreadPoolExecutor(_THREADS))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(PredictionService(model), self._grpc)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(ModelService(model), self._grpc)
        self.grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._rest = RestServer(("127.0.0.1", 0), type("Handler", (RestHandler,), {"model": model}))
        self.rest_port = self._rest.server_address[1]
        self._grpc.start()
        threading.Thread(target=self._rest.serve_forever, daemon=True).start()

    def close(self):
        self._rest.shutdown()
        self._grpc.stop(grace=None).wait()


def main():
    """Parses the command line and serves until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE", help="directory of version directories")
    parser.add_argument("--model_name", default="default", metavar="NAME")
    parser.add_argument("--batching_parameters_file", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--poll_seconds", type=float, default=1.0, metavar="S", help="between looks at BASE")
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S", help="ends after this time at the latest")
    arguments = parser.parse_args()
    file = arguments.batching_parameters_file
    server = Server(arguments.base, arguments.model_name, file and file.read_text())
    _say(server.loaded, rest_port=server.rest_port, grpc_port=server.grpc_port)

    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), ended.set()), daemon=True).start()
    until = time.monotonic() + arguments.seconds
    while time.monotonic() < until and not ended.wait(arguments.poll_seconds):
        loaded = server.versions.poll()
        if loaded:
            _say(loaded)
    server.close()


def _say(loaded, **more):
    version = {"version": loaded.number, "warmup_requests": loaded.warmed} if loaded else {}
    print(json.dumps({**more, **version}), flush=True)


if __name__ == "__main__":
    main()
