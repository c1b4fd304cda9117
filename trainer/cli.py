"""The command line: finds the command, parses its flags, turns errors into one line and an exit code.

Everything in here and in `flags`, `config`, `run_dir`, `listing` is done before TensorFlow is imported.
"""

import argparse
import contextlib
import importlib
import os
import signal
import sys
import threading
import traceback

import ut_keras
from trainer import flags
from ut_keras.errors import UsageError, UserError
from ut_keras.registry import near_names

PROGRAM = "python -m trainer"
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143


def main(argv=None):
    """Runs one command and returns its exit code.

    Args:
        argv: list of arguments without the program's name; None takes the process's own.

    Returns:
        0 when all went well, 2 for a wrong name or value on the command line, 1 for another error
        that the user can put right, 130 after Ctrl-C, 143 after SIGTERM (training saves first).
        Faults of the program itself are raised.
    """
    try:
        with _terminable():
            return _run(sys.argv[1:] if argv is None else list(argv)) or 0
    except UserError as error:
        return _fail(error, error.exit_code)
    except BrokenPipeError:  # the reader of our output has gone: `ls | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        return _fail(error, UserError.exit_code)
    except _Terminated:
        return _fail("terminated", TERMINATED)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)


class _Terminated(BaseException):
    """SIGTERM came; raised, so that what is half written is removed on the way out."""


@contextlib.contextmanager
def _terminable():
    """Makes SIGTERM an exception. Training puts its own handler in place of this one while it runs."""

    def receive(number, frame):
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():  # only that one has handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, receive)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail(error, code):
    line = " ".join(part.strip() for part in str(error).splitlines())  # blanks inside belong to what is named
    kind = "" if code in (INTERRUPTED, TERMINATED) else "error: "
    print(f"trainer: {kind}{line}", file=sys.stderr, flush=True)
    return code


def _run(argv):
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        raise UsageError(f"KERAS_BACKEND={backend}: only the tensorflow backend is supported; unset it")
    name, rest = _command(argv)
    parser = make_parser(name)
    try:
        arguments, unknown = parser.parse_known_args(rest)
    except SystemExit as stop:  # --help and --version
        return stop.code
    if unknown:
        raise UsageError(_unknown(parser, unknown[0], name))
    for flag in flags.COMMANDS[name].required:
        if getattr(arguments, flag) is None:
            hint = f"; `{PROGRAM} ls problems` lists the names" if flag == "problem" else ""
            raise UsageError(f"{name} needs --{flag}{hint}")
    if arguments.usr_dir:
        import_user_code(arguments.usr_dir)
    module, function = flags.COMMANDS[name].run.split(":")
    return getattr(importlib.import_module(module), function)(arguments)


def _command(argv):
    """Returns (command, its arguments): training where the first argument is a flag."""
    if not argv:
        raise UsageError(f"train needs --problem; `{PROGRAM} --help` shows how to start")
    if argv[0].startswith("-"):
        return "train", argv
    if argv[0] in flags.COMMANDS:
        return argv[0], argv[1:]
    raise UsageError(f"no command is called {argv[0]!r}{near_names(argv[0], flags.COMMANDS)}")


def _unknown(parser, argument, command):
    if not argument.startswith("-"):
        return f"{command} takes no argument {argument!r}"
    flag = argument.split("=")[0]
    known = [option for action in parser._actions for option in action.option_strings]
    return f"{command} has no flag {flag!r}{near_names(flag, known)}"


class _Parser(argparse.ArgumentParser):
    """Reports an error by raising it: no usage text goes before the one line."""

    def error(self, message):
        raise UsageError(message.removeprefix("argument "))


def make_parser(name):
    """Returns the argparse parser of one command."""
    command = flags.COMMANDS[name]
    description = command.description
    if name == "train":
        width = max(len(other) for other in flags.COMMANDS)
        listed = "\n".join(f"  {other:{width}}  {c.summary}" for other, c in flags.COMMANDS.items())
        description += f"\n\ncommands:\n{listed}\n\n`{PROGRAM} COMMAND --help` shows the flags of each."
    parser = _Parser(
        prog=PROGRAM if name == "train" else f"{PROGRAM} {name}",
        usage="%(prog)s --problem=NAME [flags]" if name == "train" else None,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_flags(parser)
    if name == "train":
        parser.add_argument("--version", action="version", version=f"ut_keras {ut_keras.__version__}")
    return parser


def import_user_code(path):
    """Imports the package at `path`, which registers the user's own problems, models and hparams sets.

    The package's parent directory is put on the import path, as T2T does.
    """
    path = os.path.abspath(os.path.expanduser(path))
    if not os.path.isfile(os.path.join(path, "__init__.py")):
        raise UserError(f"--usr_dir={path} is not a package: it has no __init__.py")
    parent, name = os.path.split(path)
    if parent not in sys.path:
        sys.path.insert(0, parent)
    try:
        module = importlib.import_module(name)
    except UserError:
        raise
    except Exception as error:
        places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(path)]
        where = f" ({places[-1].filename}, line {places[-1].lineno})" if places else ""
        raise UserError(f"--usr_dir={path}: {type(error).__name__}: {error}{where}") from error
    if os.path.dirname(os.path.abspath(module.__file__ or "")) != path:
        raise UserError(f"--usr_dir={path}: another package is called {name!r}; rename the directory")
