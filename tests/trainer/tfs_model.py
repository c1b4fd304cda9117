"""What a model server does with a base path: loads its versions, warms them up and runs them.

Legend: B rows of a request.

Versions are loaded as graphs into sessions, which is what `tensorflow_model_server` does in C++: nothing of Keras or
of `tf.function` is left at this point. As there by default, the highest version alone is served.
"""

import pathlib
import threading

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  its ops, which the stock server has built in
from tensorflow_serving.apis import prediction_log_pb2

tf.get_logger().setLevel("ERROR")  # that sessions are TensorFlow 1 is known
MOST_WARMUP_REQUESTS = 1000  # the real server refuses a model with more
DEFAULT_SIGNATURE = "serving_default"


class BadRequestError(Exception):
    """INVALID_ARGUMENT, 400."""


class NotServedError(Exception):
    """NOT_FOUND, 404."""


class Version:
    """One loaded version.

    Args:
        directory: with saved_model.pb.
        number: the version.

    Attributes:
        signatures: {name: SignatureDef}.
        warmed: number of warm-up requests that were run.
    """

    def __init__(self, directory, number):
        self.number = number
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            loaded = tf.compat.v1.saved_model.load(self._session, ["serve"], str(directory))
        self.signatures = dict(loaded.signature_def)
        requests = warmup_requests(directory)
        for request in requests:
            feeds = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            self.run(request.model_spec.signature_name, feeds)
        self.warmed = len(requests)

    def signature(self, name):
        """Returns the SignatureDef of a name; "" is the default one."""
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise BadRequestError(f'Serving signature name: "{name}" not found in signature def')
        return self.signatures[name]

    def run(self, signature_name, feeds, wanted=()):
        """Returns {output: array}.

        Args:
            signature_name: "" for the default one.
            feeds: {input: array}.
            wanted: names of outputs; none: all.

        Raises:
            BadRequestError: names, types or shapes are not those of the signature.
        """
        signature = self.signature(signature_name)
        check_feeds(signature, feeds)
        unknown = [name for name in wanted if name not in signature.outputs]
        if unknown:
            raise BadRequestError(f"output tensor alias not found in signature: {unknown[0]}")
        fetches = {name: signature.outputs[name].name for name in wanted or signature.outputs}
        try:
            return self._session.run(fetches, {signature.inputs[name].name: value for name, value in feeds.items()})
        except (tf.errors.InvalidArgumentError, ValueError, TypeError) as error:
            raise BadRequestError(str(error)) from None

    def close(self):
        self._session.close()


def check_feeds(signature, feeds):
    """BadRequestError where `feeds` {input: array} are not what the SignatureDef takes."""
    extra = ", ".join(sorted(feeds.keys() - signature.inputs.keys()))
    missing = ", ".join(sorted(signature.inputs.keys() - feeds.keys()))
    if extra or missing:
        raise BadRequestError(f"inputs do not match the signature: sent extra {{{extra}}}, missing {{{missing}}}")
    for name, value in feeds.items():
        expected, sizes = signature.inputs[name], signature.inputs[name].tensor_shape.dim
        found = tf.as_dtype(value.dtype) if value.dtype != object else tf.string
        if found.as_datatype_enum != expected.dtype:
            raise BadRequestError(f"input {name} is {found.name}, expected {tf.as_dtype(expected.dtype).name}")
        fits = np.ndim(value) == len(sizes) and all(
            wanted.size in (-1, size) for wanted, size in zip(sizes, np.shape(value), strict=True)
        )
        if not fits:
            shape = [dim.size for dim in sizes]
            raise BadRequestError(
                f"input {name} has the shape {list(np.shape(value))}, expected {shape} (-1 is any size)"
            )


def warmup_requests(directory):
    """Returns the PredictRequests of a version's warm-up file; none where there is no such file."""
    path = pathlib.Path(directory) / "assets.extra" / "tf_serving_warmup_requests"
    if not path.exists():
        return []
    records = [record.numpy() for record in tf.data.TFRecordDataset([str(path)])]
    if len(records) > MOST_WARMUP_REQUESTS:
        raise ValueError(f"{path}: {len(records)} warm-up requests are more than {MOST_WARMUP_REQUESTS}")
    return [prediction_log_pb2.PredictionLog.FromString(record).predict_log.request for record in records]


class Versions:
    """The versions below a base path: the highest is loaded and then takes the place of the one before.

    Args:
        base: directory of numbered directories.
        make: function (Version) -> what answers for it, with `run` and `signature` of `Version`.
    """

    def __init__(self, base, make=lambda version: version):
        self._base = pathlib.Path(base)
        self._make = make
        self._lock = threading.Lock()
        self._current = None
        self.states = {}  # {number: "AVAILABLE" or "END"}

    def poll(self):
        """Loads a version that is higher than the one being served; returns the `Version` where it did."""
        numbers = [int(entry.name) for entry in self._base.iterdir() if entry.name.isdecimal()]
        highest = max(numbers, default=None)
        if highest is None or self._current and highest <= self._current.number:
            return None
        loaded = Version(self._base / str(highest), highest)
        with self._lock:
            self.states = {**dict.fromkeys(self.states, "END"), highest: "AVAILABLE"}
            # The one before is not closed: requests may be under way in it.
            self._current = self._make(loaded)
        return loaded

    def get(self, number=None):
        """Returns what answers for a version, None for the current one; NotServedError if it is another."""
        with self._lock:
            current = self._current
        if current is None or number not in (None, current.number):
            raise NotServedError(f"no version {number or ''} is being served")
        return current
