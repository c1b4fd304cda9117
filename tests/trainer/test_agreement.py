"""What workers tell each other, in two real processes and on mirrored replicas."""

import json

import pytest

from tests.trainer.two_workers import run_workers
from trainer import agreement, devices

PROGRAM = """
import hashlib, json
import keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
from trainer import agreement, cluster, devices
from ut_keras.errors import UserError

there = devices.start("auto", cluster.from_environment("auto"), 60)
mine = there.worker
found = {"devices": there.describe(), "replicas": there.replicas, "chief": there.chief}
found["nothing"] = agreement.gather(there, "")
found["gather"] = agreement.gather(there, "\\u00e9" * (1 + 2 * mine))
found["from_chief"] = agreement.from_chief(there, [0.1 + mine, 2**53 + 1 - mine, mine == 0, {"text": str(mine)}])
agreement.agree(there, {"batch_size": 4, "data": "ab" * 500})
found["errors"] = []
for other in ({"batch_size": 4 + mine}, {"data": "ab" * 500 + str(mine)}, {("x", "y")[mine]: 1}):
    try:
        agreement.agree(there, {"lines": 3, **other})
    except UserError as error:
        found["errors"].append(str(error))

keras.utils.set_random_seed(7)
with there.strategy.scope():
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(4), keras.layers.Dropout(0.5)])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam())
    optimizer.build(model.trainable_variables)
    kinds = [
        tf.Variable(2**40, dtype=tf.int64), tf.Variable(mine == 0), tf.Variable([0.0], dtype=tf.float64),
        tf.Variable([0.0, 0.0], dtype=tf.float16),
    ]
kinds.append(tf.Variable(np.zeros([0, 3], np.float32)))  # outside of the scope: it ends TensorFlow there
variables = model.variables + optimizer.variables + kinds
for index, variable in enumerate(variables[:-5]):
    variable.assign(np.full(variable.shape, 10 * mine + index + 0.3).astype(variable.dtype))
kinds[0].assign(2**40 + 1 + mine)
kinds[1].assign(mine == 0)
kinds[2].assign([0.1 + mine])
kinds[3].assign([0.1 + mine, float("inf")])
agreement.CHUNK = 5  # vectors are cut into several sums
agreement.broadcast(there, variables)
found["values"] = [np.asarray(variable.numpy()).ravel().tolist() for variable in variables]
found["dtypes"] = sorted({str(variable.numpy().dtype) for variable in variables})
agreement.barrier(there)
print(json.dumps(found))
"""


def answers(count, **env):
    results = run_workers(["-c", PROGRAM], count, env=env, timeout=120)
    for result in results:
        assert result.returncode == 0, result.stderr[-3000:]
    return [json.loads(result.stdout.splitlines()[-1]) for result in results]


@pytest.mark.slow
def test_two_workers_come_to_the_chiefs_values():
    chief, other = answers(2)
    assert chief["devices"] == other["devices"] == "2 workers x 1 x CPU"
    assert (chief["replicas"], other["replicas"]) == (2, 2)
    assert (chief["chief"], other["chief"]) == (True, False)
    assert chief["nothing"] == ["", ""]
    assert chief["gather"] == other["gather"] == ["\u00e9", "\u00e9\u00e9\u00e9"]
    assert chief["from_chief"] == other["from_chief"] == [0.1, 9007199254740993, True, {"text": "0"}]
    assert chief["errors"] == other["errors"]
    batch, data, names = chief["errors"]
    assert batch.startswith("worker 1 (127.0.0.1:")
    assert "has batch_size=5, not 4" in batch
    assert "has other data than the chief" in data
    assert "has x=nothing, not 1" in names
    assert chief["dtypes"] == ["bool", "float16", "float32", "float64", "int64"]
    assert chief["values"] == other["values"]
    assert chief["values"][-5:] == [[2**40 + 1], [True], [0.1], [pytest.approx(0.1, 1e-3), float("inf")], []]
    assert all(values[0] < 20 for values in chief["values"][:-5])


def test_one_worker_agrees_with_itself_at_once():
    alone = devices.start("one_device")
    agreement.barrier(alone)
    agreement.agree(alone, {"flag": 1})
    agreement.broadcast(alone, None)
    assert agreement.gather(alone, "x") == ["x"]
    assert agreement.from_chief(alone, (0.1, 2)) == [0.1, 2]
