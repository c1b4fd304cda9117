"""The run directory: everything that later commands need, in one place. Standard library only.

hparams.json     the effective hyperparameters
problem.json     the problem's name, arguments and vocabularies (written by the problem)
run.json         how the run was started: set, seed, precision, versions; written last
checkpoints/     the last checkpoints: model, optimizer, step, state of the loop
best/            the model as it was at the best evaluation, and that evaluation
tb/              TensorBoard events
metrics.jsonl    one JSON object per progress line and per evaluation
eval.json, decodes.txt, ponder.png    the final report
"""

import contextlib
import functools
import json
import os
import pathlib
import secrets
import shutil

from problems import textio
from ut_keras import registry
from ut_keras.errors import UserError
from ut_keras.hparams import HParams

_LOCK = ".lock"


class RunDir:
    """A run in a directory; made by `create` or `open`.

    Attributes:
        path: pathlib.Path of the directory.
        settings: dict, the content of run.json.
        hparams: the run's HParams.
    """

    def __init__(self, path, settings, hparams):
        self.path = pathlib.Path(path)
        self.settings = settings
        self.hparams = hparams
        self._discard = None
        self._lock = None

    @staticmethod
    def exists(path):
        """Returns whether `path` holds a run that `open` can open."""
        return (pathlib.Path(path).expanduser() / "run.json").is_file()

    @classmethod
    def open(cls, path):
        """Opens the run in `path`; UserError when there is none or a file of it is damaged."""
        path = pathlib.Path(path).expanduser()
        if not path.is_dir():
            raise UserError(f"there is no run directory {path}")
        if not cls.exists(path):
            raise UserError(f"{path} is not a run directory: it has no run.json")
        settings = read_json(path / "run.json")
        hparams = read_json(path / "hparams.json")
        try:
            return cls(path, settings, HParams.from_json(json.dumps(hparams)))
        except ValueError as error:
            raise UserError(f"{path / 'hparams.json'}: {error}") from None

    @classmethod
    def create(cls, path, hparams, problem, settings):
        """Makes `path` a run directory.

        Args:
            path: a directory that passes `refuse_foreign`.
            hparams: the effective HParams.
            problem: a prepared problem; its `save(path)` is called.
            settings: dict for run.json.
        """
        path = pathlib.Path(path)
        refuse_foreign(path)
        run = cls(path, settings, hparams)
        run._discard = "content" if path.exists() else "directory"
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"the run directory {path} cannot be made: {error.strerror}") from None
        try:
            problem.save(path)
            run.write("hparams.json", hparams.to_json())
            run.update(settings)
        except BaseException:
            run.discard()
            raise
        return run

    @classmethod
    @contextlib.contextmanager
    def create_whole(cls, path, hparams, problem, settings):
        """Gives a new run that is at `path` when the block ends, and nowhere if the block fails; see `create`."""
        path = pathlib.Path(path).resolve()
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.incomplete")
        try:
            yield cls.create(part, hparams, problem, settings)
            part.rename(path)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise

    @property
    def averaged_from(self):
        """The checkpoints that this is the mean of, a list of str; [] for a run that was trained."""
        return self.settings.get("averaged_from", [])

    def refuse_training(self):
        """UserError for a mean of checkpoints: it has no optimizer to go on with."""
        if self.averaged_from:
            raise UserError(
                f"{self.path} holds an average of {len(self.averaged_from)} checkpoints and cannot be trained: choose "
                f"another --output_dir, with --warm_start_from={self.path} to start from its weights"
            )

    @functools.cached_property
    def problem(self):
        """The problem that the run is of, with its vocabularies; not prepared: it has no data."""
        import problems
        from trainer.cli import import_user_code

        usr_dir = self.settings.get("usr_dir")
        if usr_dir and self.settings["problem"] not in registry.problems:
            import_user_code(usr_dir)
        return problems.load(self.path)

    def keep(self):
        """Says that the run has produced something: `discard` then does nothing."""
        self._discard = None

    def discard(self):
        """Removes what `create` made, unless `keep` was called; does nothing to a run that was opened."""
        if self._discard == "directory":
            shutil.rmtree(self.path, ignore_errors=True)
        elif self._discard == "content":
            for entry in _visible(self.path):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            (self.path / _LOCK).unlink(missing_ok=True)

    def lock(self):
        """Keeps other processes from training this run until `unlock` or the end of this one; UserError when one does.

        The file that is locked stays; a process that is killed leaves no lock behind.
        """
        with contextlib.suppress(ImportError):  # where there is no such lock, users have to look out themselves
            import fcntl

            self._lock = open(self.path / _LOCK, "a")  # noqa: SIM115 (open as long as the run is trained)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{self.path} is being trained by another process: wait for it, end it, or choose another "
                    "--output_dir"
                ) from None
            except OSError:  # a file system without locks
                pass

    def unlock(self):
        """Lets others train this run."""
        if self._lock:
            self._lock.close()
            self._lock = None

    def update(self, settings, hparams=None):
        """Writes changed settings, and hparams where given."""
        if hparams is not None and hparams != self.hparams:
            self.hparams = hparams
            self.write("hparams.json", hparams.to_json())
        self.settings = dict(settings)
        self.write("run.json", json.dumps(self.settings, indent=2, sort_keys=True) + "\n")

    def write(self, name, text):
        """Writes a text file of the run: all of it or nothing."""
        textio.write_text(self.path / name, text)

    def log_metrics(self, step, values):
        """Appends one line to metrics.jsonl: "step" and then `values`, a dict of numbers."""
        path = self.path / "metrics.jsonl"
        size = path.stat().st_size if path.exists() else 0
        try:
            with open(path, "a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
        except OSError as error:
            if path.exists():
                os.truncate(path, size)
            raise UserError(f"cannot write {path}: {error.strerror} ({space_left(self.path)})") from None

    def metrics(self):
        """Returns the lines of metrics.jsonl as dicts; what is no such line, one that was cut off, is left out."""
        path = self.path / "metrics.jsonl"
        lines = textio.read_any_lines(path) if path.exists() else []
        return [line for line in map(_parse_line, lines) if line]

    def evaluations(self):
        """Returns those lines of `metrics` that are evaluations of the development split."""
        return [line for line in self.metrics() if "dev/count" in line]

    def rewind_metrics(self, step):
        """Drops the lines after `step`: those of updates that were lost with the process and are made again."""
        lines = [line for line in self.metrics() if line["step"] <= step]
        if (self.path / "metrics.jsonl").exists():
            self.write("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def space_left(path):
    """Returns how much room the disk of a directory has, for a message: "0 MB of 7,912 MB are free there"."""
    try:
        disk = shutil.disk_usage(path)
    except OSError:
        return "the room there is unknown"
    return f"{disk.free // 10**6:,} MB of {disk.total // 10**6:,} MB are free there"


def refuse_foreign(path, flag="--output_dir"):
    """UserError when `path` is a file, or a directory with files of which no run can be sure that they are its own."""
    path = pathlib.Path(path)
    if path.exists() and not path.is_dir():
        raise UserError(f"{flag}={path} is a file")
    there = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise UserError(f"{flag}={path}: {there} is {'not writable' if there.is_dir() else 'a file'}")
    foreign = [entry.name for entry in _visible(path) if entry.name not in ("hparams.json", "problem.json")]
    if foreign and not RunDir.exists(path):
        raise UserError(
            f"{flag}={path} holds {sorted(foreign)[0]} and is not a run directory; choose an empty or a new one"
        )


def checkpoint_path(path):
    """Returns a path without the ending of its file; UserError where no checkpoint and no directory is there."""
    path = str(pathlib.Path(path).expanduser()).removesuffix(".index")
    if not os.path.isdir(path) and not os.path.isfile(path + ".index"):
        missing_checkpoint(path)
    return path


def missing_checkpoint(path):
    """Raises the UserError of a checkpoint that is not there."""
    raise UserError(f"there is no checkpoint {path}; name best, last, or a path such as DIR/checkpoints/ckpt-1000")


def _visible(path):
    return [entry for entry in path.iterdir() if not entry.name.startswith(".")] if path.is_dir() else []


def _parse_line(line):
    try:
        value = json.loads(line.text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("step"), int) else None


def read_json(path):
    """Returns the object in a JSON file of a run; UserError when it is missing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path.parent} is not a run directory: it has no {path.name}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} is damaged: it does not hold a JSON object")
    return value
