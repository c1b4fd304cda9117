"""Requests of several clients in one run of the model, as a server with --enable_batching makes them.

Legend: B rows of a request.
"""

import concurrent.futures
import queue
import threading
import time

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from tests.trainer.tfs_model import BadRequestError, check_feeds

# tensorflow_serving/servables/tensorflow/session_bundle_config.proto, which the package of stubs leaves out.
_FIELDS = {
    "max_batch_size": (1, "google.protobuf.Int64Value"),
    "batch_timeout_micros": (2, "google.protobuf.Int64Value"),
    "max_enqueued_batches": (3, "google.protobuf.Int64Value"),
    "num_batch_threads": (4, "google.protobuf.Int64Value"),
    "thread_pool_name": (5, "google.protobuf.StringValue"),
    "allowed_batch_sizes": (6, None),
    "pad_variable_length_inputs": (7, None),
}


def _parameters_class():
    from google.protobuf import wrappers_pb2

    field = descriptor_pb2.FieldDescriptorProto
    plain = {"allowed_batch_sizes": (field.TYPE_INT64, field.LABEL_REPEATED)}
    file = descriptor_pb2.FileDescriptorProto(
        name="session_bundle_config.proto",
        package="tensorflow.serving",
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto"],
    )
    message = file.message_type.add(name="BatchingParameters")
    for name, (number, wrapper) in _FIELDS.items():
        type_, label = plain.get(name, (field.TYPE_BOOL, field.LABEL_OPTIONAL))
        if wrapper:
            type_, label = field.TYPE_MESSAGE, field.LABEL_OPTIONAL
        message.field.add(name=name, number=number, label=label, type=type_, type_name=wrapper and f".{wrapper}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.serving.BatchingParameters"))


BatchingParameters = _parameters_class()


def parse(text):
    """Returns the BatchingParameters of a text proto, checked by the rules of the real server.

    Raises:
        ValueError: a field is unknown or of another type, or the allowed sizes do not end with the largest.
    """
    try:
        parameters = text_format.Parse(text, BatchingParameters())
    except text_format.ParseError as error:
        raise ValueError(f"not batching parameters: {error}") from None
    sizes = list(parameters.allowed_batch_sizes)
    if sizes and (sizes != sorted(set(sizes)) or sizes[-1] != parameters.max_batch_size.value):
        raise ValueError(f"allowed_batch_sizes {sizes} do not rise to max_batch_size")
    return parameters


class Batched:
    """A version whose requests wait for each other and run together.

    Args:
        version: `Version`.
        parameters: BatchingParameters.
    """

    def __init__(self, version, parameters):
        self.number, self.signature, self.signatures = version.number, version.signature, version.signatures
        self._run = version.run
        self._largest = parameters.max_batch_size.value or 1000
        self._timeout = parameters.batch_timeout_micros.value / 1e6
        self._sizes = list(parameters.allowed_batch_sizes)
        self._waiting = queue.Queue()
        self.sizes = []  # rows of each batch that ran, padding not counted
        for _ in range(parameters.num_batch_threads.value or 1):
            threading.Thread(target=self._work, daemon=True).start()

    def run(self, signature_name, feeds, wanted=()):
        """As `Version.run`."""
        check_feeds(self.signature(signature_name), feeds)
        rows = {len(value) for value in feeds.values()}
        if len(rows) > 1:
            raise BadRequestError("Batching session Run() input tensors must have equal 0th-dimension size.")
        if max(rows) > self._largest:
            raise BadRequestError(f"Task size {max(rows)} is larger than maximum input batch size {self._largest}")
        future = concurrent.futures.Future()
        self._waiting.put((signature_name, feeds, max(rows), future))
        found = future.result()
        return {name: found[name] for name in wanted or found}

    def _work(self):
        left = None
        while True:
            tasks, left = [left or self._waiting.get()], None
            until = time.monotonic() + self._timeout
            while sum(task[2] for task in tasks) < self._largest and not left:
                try:
                    task = self._waiting.get(timeout=max(until - time.monotonic(), 1e-6))
                except queue.Empty:
                    break
                fits = task[0] == tasks[0][0] and sum(t[2] for t in tasks) + task[2] <= self._largest
                tasks, left = (tasks + [task], None) if fits else (tasks, task)
            self._answer(tasks)

    def _answer(self, tasks):
        rows = [task[2] for task in tasks]
        self.sizes.append(sum(rows))
        try:
            feeds = {name: np.concatenate([task[1][name] for task in tasks]) for name in tasks[0][1]}
            missing = next((size for size in self._sizes if size >= sum(rows)), sum(rows)) - sum(rows)
            if missing and sum(rows):  # the real server repeats the first row
                feeds = {n: np.concatenate([value, np.repeat(value[:1], missing, 0)]) for n, value in feeds.items()}
            found = self._run(tasks[0][0], feeds)
            ends = np.cumsum(rows)
            for (_, _, count, future), end in zip(tasks, ends, strict=True):
                future.set_result({name: value[end - count : end] for name, value in found.items()})
        except Exception as error:
            for *_, future in tasks:
                future.set_exception(error)
