"""Flags that several commands have. Standard library only."""

from trainer.flag_types import filled


def add_data_flags(parser):
    """Where data are."""
    parser.add_argument(
        "--data_dir", type=filled, metavar="DIR", help="prepared data (default: the directory of tensorflow-datasets)"
    )
    parser.add_argument("--manual_dir", type=filled, metavar="DIR", help="where the official data file was put by hand")


def add_usr_dir(parser):
    """The user's own package."""
    parser.add_argument(
        "--usr_dir",
        "--t2t_usr_dir",
        type=filled,
        metavar="DIR",
        help="package of your own problems and sets, imported first",
    )


def add_problem_flags(parser):
    """Which problem, and its arguments."""
    parser.add_argument("--problem", type=filled, metavar="NAME", help="what to learn; `ls problems` lists the names")
    parser.add_argument(
        "--problem_args",
        action="append",
        metavar="K=V,K=V",
        help="the problem's arguments; `ls problems NAME` lists them",
    )


def add_run_flags(parser):
    """Which run, and which of its weights."""
    parser.add_argument("--output_dir", type=filled, metavar="DIR", help="the run directory that training wrote")
    parser.add_argument(
        "--checkpoint",
        "--checkpoint_path",
        default="best",
        type=filled,
        metavar="best|last|PATH",
        help="which weights to use (default: best on the development split)",
    )
