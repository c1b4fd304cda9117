"""What one training run does. Standard library only: no TensorFlow."""

import dataclasses
import pathlib

from trainer.cluster import Cluster
from ut_keras.hparams import HParams


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """What one training run does.

    Attributes:
        problem: registered name.
        problem_args: dict of the problem's arguments, all of them.
        hparams_set: name of the set that `hparams` started from.
        hparams: the effective HParams; train_steps and eval_every are in it.
        output_dir: pathlib.Path of the run directory.
        data_dir, manual_dir, usr_dir, warm_start_from: str or None.
        seed: seed of weights, data order and dropout.
        strategy: "auto", "one_device", "mirrored", "multi_worker" or "tpu".
        cluster: `Cluster` of the workers, where there are several.
        worker_timeout: seconds within which all of them have to come.
        gradient_accumulation: parts of a batch before one update.
        steps_per_execution: updates in one call of TensorFlow.
        mixed_precision: "none" or the name of a Keras dtype policy.
        jit_compile: compile forward and backward pass with XLA.
        deterministic: only operations that give the same bits each time.
        ema_decay: decay of the moving average of the weights; 0: none.
        on_nan: "stop" or "skip".
        evaluate: evaluate while and after training.
        early_stopping: evaluations without a better one after which training ends; None: never.
        export_best: export at each best evaluation.
        log_every: updates between progress lines.
        profile: (first update, number of updates) to profile, or None.
        keep_checkpoints: how many of the last checkpoints are kept.
    """

    problem: str
    problem_args: dict
    hparams_set: str
    hparams: HParams
    output_dir: pathlib.Path
    data_dir: str | None = None
    manual_dir: str | None = None
    usr_dir: str | None = None
    warm_start_from: str | None = None
    seed: int = 0
    strategy: str = "auto"
    cluster: Cluster | None = None
    worker_timeout: float = 120.0
    gradient_accumulation: int = 1
    steps_per_execution: int = 1
    mixed_precision: str = "none"
    jit_compile: bool = False
    deterministic: bool = False
    ema_decay: float = 0.0
    on_nan: str = "stop"
    evaluate: bool = True
    early_stopping: int | None = None
    export_best: bool = False
    log_every: int = 100
    profile: tuple | None = None
    keep_checkpoints: int = 3

    def settings(self):
        """Returns what run.json remembers of this configuration."""
        return {
            "problem": self.problem,
            "problem_args": self.problem_args,
            "hparams_set": self.hparams_set,
            "usr_dir": _absolute(self.usr_dir),
            "data_dir": _absolute(self.data_dir),
            "manual_dir": _absolute(self.manual_dir),
            "seed": self.seed,
            "mixed_precision": self.mixed_precision,
            "ema_decay": self.ema_decay,
        }

    def of_all_workers(self):
        """Returns what has to be the same for all workers, {name: JSON value}; the chief's seed goes for all."""
        names = (
            "problem problem_args hparams_set gradient_accumulation steps_per_execution mixed_precision jit_compile "
            "deterministic ema_decay on_nan evaluate early_stopping log_every profile"
        ).split()
        hparams = {f"hparam {name}": value for name, value in dataclasses.asdict(self.hparams).items()}
        return {name: getattr(self, name) for name in names} | hparams


def _absolute(path):
    return path and str(pathlib.Path(path).expanduser().resolve())
