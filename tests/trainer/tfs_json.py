"""TensorFlow Serving's JSON: the row format ("instances") and the column format ("inputs") of a predict request.

Source: "RESTful API" of TensorFlow Serving's documentation. Errors are `BadRequestError`, in words close to its own.
"""

import base64
import binascii
import json

import numpy as np
import tensorflow as tf

from tests.trainer.tfs_model import BadRequestError


def parse_predict(body, signature_of):
    """Returns (signature name, {input: array}, whether the answer is to come in rows).

    Args:
        body: bytes.
        signature_of: function (name) -> SignatureDef.
    """
    try:
        request = json.loads(body)
    except ValueError as error:
        raise BadRequestError(f"JSON Parse error: {error}") from None
    if not isinstance(request, dict):
        raise BadRequestError(f"JSON Value: {_shown(request)} Is not object")
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise BadRequestError("'signature_name' key must be a string value.")
    inputs = signature_of(name).inputs
    rows = "instances" in request
    if rows == ("inputs" in request):
        raise BadRequestError("expecting one of 'inputs' or 'instances', and not both")
    values = _columns(request["instances"], inputs) if rows else _named(request["inputs"], inputs)
    return name, {key: _array(value, tf.as_dtype(inputs[key].dtype)) for key, value in values.items()}, rows


def format_predict(outputs, rows):
    """Returns the answer to a predict request as an object for JSON.

    Args:
        outputs: {output: array}.
        rows: "predictions", an item for each row, or else "outputs", an item for each output. One output alone is
            given without its name.
    """
    values = {name: _plain(value, name.endswith("_bytes")) for name, value in outputs.items()}
    if not rows:
        return {"outputs": next(iter(values.values())) if len(values) == 1 else values}
    if len({len(value) for value in values.values()}) != 1:
        raise BadRequestError("Tensors have inconsistent batch size, which the row format cannot hold")
    if len(values) == 1:
        return {"predictions": next(iter(values.values()))}
    return {"predictions": [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]}


def _columns(instances, inputs):
    if not isinstance(instances, list):
        raise BadRequestError(f"JSON Value: {_shown(instances)} Expecting 'instances' to be an list/array")
    if not instances:
        raise BadRequestError("JSON Value: [] No values in 'instances' array")
    named = [isinstance(instance, dict) and not _is_base64(instance) for instance in instances]
    if not any(named):
        if len(inputs) > 1:
            raise BadRequestError("instances is a plain list, but expecting list of objects: there are several inputs")
        return {next(iter(inputs)): instances}
    for number, instance in enumerate(instances):
        if not named[number] or instance.keys() != set(inputs):
            names = ",".join(sorted(inputs))
            raise BadRequestError(
                f"Failed to process element: {number} of 'instances' list. JSON object: {_shown(instance)} "
                f"keys must be equal to: {names}"
            )
    return {name: [instance[name] for instance in instances] for name in inputs}


def _named(values, inputs):
    if not isinstance(values, dict) or _is_base64(values):
        if len(inputs) > 1:
            raise BadRequestError("inputs is a plain value/list, but expecting an object: there are several inputs")
        return {next(iter(inputs)): values}
    missing = [name for name in inputs if name not in values]
    if missing:
        raise BadRequestError(f"Missing named input: {missing[0]} in 'inputs' object.")
    return {name: values[name] for name in inputs}


def _array(value, dtype):
    """Returns the array of a nested list; every leaf has the type, and all lists of a level are of one size."""
    shape = _shape(value)
    leaves = list(_leaves(value, shape, dtype))
    if dtype != tf.string:
        return np.array(leaves, dtype.as_numpy_dtype).reshape(shape)
    texts = np.empty(len(leaves), object)
    texts[:] = leaves
    return texts.reshape(shape)


def _shape(value):
    if not isinstance(value, list):
        return []
    return [len(value), *_shape(value[0])] if value else [0]


def _leaves(value, shape, dtype):
    if not isinstance(value, list):
        if shape:
            raise BadRequestError(f"JSON Value: {_shown(value)} found at incorrect level in the JSON DOM")
        yield _leaf(value, dtype)
        return
    if not shape:
        raise BadRequestError("Encountered list at unexpected level")
    if len(value) != shape[0]:
        raise BadRequestError(f"Encountered list at unexpected size: {len(value)} expected size: {shape[0]}")
    for part in value:
        yield from _leaves(part, shape[1:], dtype)


def _leaf(value, dtype):
    try:
        if dtype == tf.string and _is_base64(value):
            return base64.b64decode(value["b64"], validate=True)
        if dtype == tf.string and isinstance(value, str):
            return value.encode()
    except (binascii.Error, UnicodeEncodeError) as error:
        raise BadRequestError(f"JSON Value: {_shown(value)} {error}") from None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype != tf.string and number:
        return value
    raise BadRequestError(f"JSON Value: {_shown(value)} is not of expected type: {dtype.name}")


def _is_base64(value):
    return isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str)


def _plain(value, binary):
    def text(item):
        return {"b64": base64.b64encode(item).decode()} if binary else item.decode("utf-8", errors="replace")

    def walk(item):
        if isinstance(item, list):
            return [walk(part) for part in item]
        return text(item) if isinstance(item, bytes) else item

    return walk(value.tolist())


def _shown(value):
    return json.dumps(value)[:100]
