"""The flags of training, in the groups that `--help` shows. Standard library only."""

from trainer.flag_types import add_switch, filled, fraction, interval, positive, seconds, seed
from trainer.shared_flags import add_data_flags, add_problem_flags, add_usr_dir


def add_train_flags(parser):
    """Adds all flags of the command `train`."""
    _task(parser.add_argument_group("what is learned, by what"))
    _run(parser.add_argument_group("the run"))
    _devices(parser.add_argument_group("devices"))
    _numbers(parser.add_argument_group("precision and speed"))
    _looking_on(parser.add_argument_group("looking on"))


def _task(parser):
    add_problem_flags(parser)
    parser.add_argument(
        "--model", type=filled, metavar="NAME", help="the model, where the set names another of its family"
    )
    parser.add_argument(
        "--hparams_set", type=filled, metavar="NAME", help="named hyperparameters (default: the problem's)"
    )
    parser.add_argument(
        "--hparams",
        action="append",
        metavar="K=V,K=V",
        help="changes to that set; may be repeated. `ls hparams NAME` shows all and says what each length counts "
        "(max_length: tokens of one sequence with its end token; batch_size: tokens of source and target with "
        "padding, over all devices, or examples under use_fixed_batch_size; under batch_size_per_replica of each "
        "device)",
    )
    add_data_flags(parser)
    add_usr_dir(parser)


def _run(parser):
    parser.add_argument(
        "--output_dir", type=filled, metavar="DIR", help="the run directory (default: runs/PROBLEM-HPARAMS_SET)"
    )
    parser.add_argument("--train_steps", type=positive, metavar="N", help="updates in all (default: the set's)")
    parser.add_argument("--eval_every", type=positive, metavar="N", help="updates between evaluations and checkpoints")
    parser.add_argument(
        "--schedule",
        choices=("train_and_evaluate", "continuous_train_and_eval", "train", "evaluate"),
        default="train_and_evaluate",
        help="train: without any evaluation; evaluate: as the command of that name (default: train_and_evaluate)",
    )
    parser.add_argument(
        "--seed", "--random_seed", type=seed, metavar="N", help="of weights, data order, dropout (default: 0)"
    )
    parser.add_argument(
        "--keep_checkpoints",
        "--keep_checkpoint_max",
        type=positive,
        default=3,
        metavar="N",
        help="how many of the last checkpoints are kept, beside the best (default: 3)",
    )
    parser.add_argument(
        "--warm_start_from",
        type=filled,
        metavar="DIR",
        help="start from the weights of another run or checkpoint: those that fit by name and shape",
    )
    parser.add_argument(
        "--early_stopping",
        type=positive,
        metavar="N",
        help="stop after N evaluations without a better one (default: never)",
    )
    add_switch(parser, "--export_best", "write a SavedModel into OUTPUT_DIR/export at each best evaluation")
    parser.add_argument(
        "--ema_decay",
        type=fraction,
        default=0.0,
        metavar="F",
        help="keep an exponential moving average of the weights, which every other command then uses; 0.999: over the "
        "last thousand updates (default: 0, none)",
    )
    parser.add_argument(
        "--on_nan",
        choices=("stop", "skip"),
        default="stop",
        help="where loss or gradient are not finite: stop before a checkpoint is written, or leave that update out and "
        "go on (default: stop)",
    )


def _devices(parser):
    parser.add_argument(
        "--strategy",
        choices=("auto", "one_device", "mirrored", "multi_worker", "tpu"),
        default="auto",
        help="mirrored: all GPUs of this machine; multi_worker: the processes of TF_CONFIG, or of Slurm or Kubernetes; "
        "auto: multi_worker where TF_CONFIG names several, else mirrored where there are several GPUs (default: auto)",
    )
    parser.add_argument(
        "--worker_timeout",
        type=seconds,
        default=120.0,
        metavar="S",
        help="seconds within which every worker has to come, and after which one that is gone is an error "
        "(default: 120)",
    )
    parser.add_argument(
        "--gradient_accumulation",
        type=positive,
        metavar="N",
        help="take each device's rows of a batch in N parts before the one update: the same numbers in less memory "
        "(default: the set's optimizer_multistep_accumulate_steps, else 1)",
    )
    parser.add_argument(
        "--steps_per_execution",
        type=positive,
        default=1,
        metavar="N",
        help="updates in one call of TensorFlow: less time between the steps of a small model (default: 1)",
    )


def _numbers(parser):
    parser.add_argument(
        "--mixed_precision",
        choices=("none", "mixed_float16", "mixed_bfloat16"),
        help="Keras dtype policy; mixed_float16 scales the loss (default: by the set's activation_dtype, none in most)",
    )
    add_switch(parser, "--jit_compile", "compile forward and backward pass with XLA (once per batch shape)")
    remat = "compute each recurrent step again in the backward pass: less memory, more time (default: the set's)"
    add_switch(parser, "--remat", remat, default=None)
    add_switch(parser, "--deterministic", "only operations that give the same bits in each run, also where slower")


def _looking_on(parser):
    parser.add_argument(
        "--log_every",
        type=positive,
        default=100,
        metavar="N",
        help="updates per progress line and point of a curve (default: 100)",
    )
    parser.add_argument(
        "--profile",
        type=interval,
        metavar="START,COUNT",
        help="write TensorFlow's profile of COUNT updates from update START on, for TensorBoard",
    )
