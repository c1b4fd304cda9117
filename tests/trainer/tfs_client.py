"""Clients for tests of a served model: the stock gRPC stub and plain HTTP, both on loopback."""

import json
import urllib.error
import urllib.request

import grpc
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

_SECONDS = 60


class Rest:
    """REST by urllib.

    Args:
        port: of the server.
        name: of the model.
    """

    def __init__(self, port, name):
        self.url = f"http://127.0.0.1:{port}/v1/models/{name}"

    def call(self, path="", body=None):
        """Returns (status, object) of a GET, or of a POST where there is a body: bytes, or an object for JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data), timeout=_SECONDS) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def predict(self, lines):
        """Returns the predictions, a list of {output: value}."""
        status, answer = self.call(":predict", {"instances": lines})
        assert status == 200, answer
        return answer["predictions"]


class Grpc:
    """gRPC by the stubs of tensorflow-serving-api; one channel for as many threads as want it.

    Args:
        port: of the server.
        name: of the model.
    """

    def __init__(self, port, name):
        self._name = name
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._status = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def predict(self, lines, version=None, signature="serving_default", wanted=(), name=None, **inputs):
        """Returns (version, {output: array}); `inputs` take the place of {"inputs": lines}."""
        request = predict_pb2.PredictRequest(output_filter=wanted)
        self._specify(request.model_spec, version, name)
        request.model_spec.signature_name = signature
        for key, value in (inputs or {"inputs": lines}).items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
        response = self._prediction.Predict(request, _SECONDS)
        found = {key: tf.make_ndarray(value) for key, value in response.outputs.items()}
        return response.model_spec.version.value, found

    def metadata(self):
        """Returns (version, {signature: SignatureDef})."""
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        self._specify(request.model_spec)
        response = self._prediction.GetModelMetadata(request, _SECONDS)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        assert response.metadata["signature_def"].Unpack(signatures)
        return response.model_spec.version.value, dict(signatures.signature_def)

    def status(self):
        """Returns {version: state, by its number (AVAILABLE is 30, END 50)}."""
        request = get_model_status_pb2.GetModelStatusRequest()
        self._specify(request.model_spec)
        return {v.version: v.state for v in self._status.GetModelStatus(request, _SECONDS).model_version_status}

    def close(self):
        self._channel.close()

    def _specify(self, spec, version=None, name=None):
        spec.name = name or self._name
        if version is not None:
            spec.version.value = version
