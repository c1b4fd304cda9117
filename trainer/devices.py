"""Where and in which precision a run computes."""

import contextlib
import os
import signal
import threading

import keras
import tensorflow as tf

from trainer import rendezvous
from ut_keras.errors import UserError


class Devices:
    """The devices of a run.

    Attributes:
        strategy: the `tf.distribute` strategy; variables are made under its `scope()`.
        cluster: `trainer.cluster.Cluster`, or None where this process computes alone.
        worker: index of this process among the workers.
        workers: number of processes.
        replicas: number of replicas over all workers; a global batch is dealt to them.
        chief: whether this process writes the run directory.
    """

    def __init__(self, strategy, cluster=None):
        self.strategy = strategy
        self.cluster = cluster
        self.worker = cluster.index if cluster else 0
        self.workers = len(cluster.addresses) if cluster else 1
        self.replicas = strategy.num_replicas_in_sync
        self.chief = self.worker == 0

    @property
    def replicas_here(self):
        return self.replicas // self.workers

    @property
    def names(self):
        """Names of the devices of this process."""
        if self.strategy is tf.distribute.get_strategy():  # which has no list of them
            return [(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU"))[0].name]
        return list(self.strategy.extended.worker_devices)

    def describe(self):
        """Returns one line that names the devices: "2 x GPU", "2 workers x 1 x CPU"."""
        here = f"{self.replicas_here} x {_kind(self.strategy)}"
        return f"{self.workers} workers x {here}" if self.workers > 1 else here


def start(name, cluster=None, timeout=120.0):
    """Returns the Devices that --strategy names. Called before anything else of TensorFlow.

    Args:
        name: "one_device"; "mirrored": all GPUs of this machine, or its (virtual) CPUs where it has no GPU;
            "multi_worker": all GPUs (or the CPU) of each worker; "tpu": the TPU that TPU_NAME names, or this
            machine's own; "auto": multi_worker where there is a cluster, mirrored where there are two GPUs or more.
        cluster: what `cluster.from_environment(name)` returned.
        timeout: seconds to wait for the other workers.

    Raises:
        UserError: a worker has not come in time, or there is no such device.
    """
    grow_gpu_memory()
    if cluster:
        return Devices(_multi_worker(cluster, timeout), cluster)
    if name == "tpu":
        return Devices(_tpu())
    gpus = tf.config.list_logical_devices("GPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return Devices(_mirrored(gpus))
    return Devices(tf.distribute.get_strategy())


def grow_gpu_memory():
    """Lets all GPUs take memory as it is needed, before their first use: a later or a partial setting is an error."""
    for gpu in tf.config.list_physical_devices("GPU"):
        with contextlib.suppress(RuntimeError):
            tf.config.experimental.set_memory_growth(gpu, True)


def _mirrored(gpus):
    devices = [device.name for device in gpus or tf.config.list_logical_devices("CPU")]
    # TensorFlow's collectives on CPUs cannot run several steps in one function, nor in a second strategy object.
    operations = None if gpus else tf.distribute.ReductionToOneDevice()
    return tf.distribute.MirroredStrategy(devices, cross_device_ops=operations)


def _multi_worker(cluster, timeout):
    rendezvous.meet(cluster, timeout)
    with rendezvous.forming(cluster, timeout), _own_sigterm():
        try:
            return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=_resolver(cluster))
        except tf.errors.OpError as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{cluster.named(cluster.index)}: the workers cannot connect: {reason}") from error


def _resolver(cluster):
    resolvers = tf.distribute.cluster_resolver
    if cluster.source == "TF_CONFIG":
        return resolvers.TFConfigClusterResolver()
    job, index = cluster.task
    return resolvers.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster.jobs),
        task_type=job,
        task_id=index,
        num_accelerators={"GPU": len(tf.config.get_visible_devices("GPU"))},
        rpc_layer="grpc",
    )


@contextlib.contextmanager
def _own_sigterm():
    """Puts Python's handler of SIGTERM back: TensorFlow's coordination service sets one that keeps a process alive."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # only that one has handlers
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _tpu():
    name = os.environ.get("TPU_NAME") or "local"
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        if name != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, ValueError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(
            f"--strategy=tpu: there is no usable TPU {name!r}; set TPU_NAME or run on the TPU's machine "
            f"({type(error).__name__}: {reason})"
        ) from None


@contextlib.contextmanager
def precision(policy):
    """Builds what is built inside under the Keras dtype policy `policy`; "none" is float32."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32" if policy == "none" else policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _kind(strategy):
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return "TPU"
    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
