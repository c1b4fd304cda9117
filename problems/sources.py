"""Where the files of a dataset are: a folder, or an archive that holds them.

A name matches the end of a path, whole parts of it, compressed (.gz, .xz) or not: `tasks_train_simple.txt` finds
`SCAN-master/simple_split/tasks_train_simple.txt` in a zip file, and `simple_split/tasks_train_simple.txt.gz`
in a folder.
"""

import bz2
import collections
import contextlib
import dataclasses
import functools
import gzip
import hashlib
import io
import lzma
import pathlib
import tarfile
import zipfile
import zlib

from problems import textio
from ut_keras.errors import UserError

_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
_OPENERS = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\0", lzma.open), (b"BZh", bz2.open))
_COMPRESSED = ("", ".gz", ".xz", ".bz2")
# What the readers of archives raise; a zip file that is encrypted, or packed in an unknown way, is the last two.
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError),
    *(NotImplementedError, RuntimeError),
)


@dataclasses.dataclass(frozen=True)
class Official:
    """The published form of a dataset.

    Attributes:
        url: where it is downloaded from.
        file: the name of that file.
        members: names of the files in it that are wanted; any of them makes a folder the right one.
        folder: name of a folder in it whose files are all wanted; "" where there is none.
    """

    url: str
    file: str
    members: tuple
    folder: str = ""

    @property
    def advice(self):
        """What to do where it cannot be had by itself."""
        return f"put {self.file} from {self.url}, or what it holds, into a folder and name that with --manual_dir"

    def wanted(self, source):
        """Returns the names of all files that count, of those of `folder` the ones that `source` has."""
        return (*self.members, *(source.below(self.folder) if self.folder else ()))


class Source:
    """A folder or an archive (zip, or tar with any of the usual compressions).

    Args:
        path: pathlib.Path.

    Raises:
        UserError: the archive is broken.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def names(self):
        """Returns the paths of the files in it, sorted, with "/" between their parts."""
        return sorted(self._members)

    def has(self, name):
        """Returns whether a file matches `name`."""
        return self._find(name) is not None

    def read(self, name):
        """Returns the content of the file that matches `name`, uncompressed.

        Raises:
            UserError: there is none, or it is broken.
        """
        member = self._find(name)
        if member is None:
            raise UserError(f"{self.path} has no {name}")
        with self._opened(member) as stream:
            return stream.read()

    def lines(self, name):
        """Returns the list of lines of a file, as `textio.read_lines` gives them."""
        return list(textio.read_lines(io.BytesIO(self.read(name)), f"{self.path}: {name}"))

    def each_line(self, name):
        """Yields the lines of a file; that of a folder is not read into memory."""
        with self._opened(self._find(name)) as stream:
            yield from textio.read_lines(stream, f"{self.path}: {name}")

    def below(self, folder):
        """Returns the paths of the files in a folder of that name, wherever it is, sorted."""
        return [name for name in self.names() if f"/{folder}/" in f"/{name}"]

    def digest(self, names):
        """Returns eight characters that stand for the content of those of the files `names` that there are."""
        digest = hashlib.sha256()
        for name in names:
            if self.has(name):
                digest.update(name.encode() + b"\0" + self.read(name))
        return digest.hexdigest()[:8]

    @contextlib.contextmanager
    def _opened(self, member):
        """Gives a stream of the content of a member, uncompressed; what is broken in it is a UserError."""
        try:
            with self._members[member]() as raw, _unpacked(raw) as stream:
                yield stream
        except BROKEN as error:
            if getattr(error, "errno", None):
                raise UserError(f"cannot read {self.path / member}: {error.strerror}") from None
            raise UserError(f"{self.path}: {member} is broken: {error}") from None

    def _find(self, name):
        wanted = [f"{name}{suffix}" for suffix in _COMPRESSED]
        places = (member for path in wanted for member in self._by_last_part.get(path.split("/")[-1], ()))
        found = [member for member in places if any(f"/{member}".endswith(f"/{path}") for path in wanted)]
        return min(found, key=lambda member: (len(member), member), default=None)

    @functools.cached_property
    def _by_last_part(self):
        places = collections.defaultdict(list)
        for member in self._members:
            places[member.split("/")[-1]].append(member)
        return places

    @functools.cached_property
    def _members(self):
        """{path: function () -> binary file object}."""
        if self.path.is_dir():
            files = (path for path in self.path.rglob("*") if path.is_file())
            return {path.relative_to(self.path).as_posix(): functools.partial(open, path, "rb") for path in files}
        try:
            return _zip_members(self.path) if zipfile.is_zipfile(self.path) else _tar_members(self.path)
        except BROKEN as error:
            raise UserError(f"{self.path} is not a whole archive: {error or type(error).__name__}") from None


def find(manual_dir, official):
    """Returns the `Source` below `manual_dir` (a folder, or the archive itself) that holds files of `official`.

    Raises:
        UserError: there is none; the message says which file from where goes there.
    """
    manual = pathlib.Path(manual_dir).expanduser()
    if not manual.exists():
        raise UserError(f"--manual_dir={manual} does not exist; {official.advice}")
    if manual.is_file():
        return Source(manual)
    folder = Source(manual)
    if any(folder.has(name) for name in official.members):
        return folder
    broken = None
    for path in sorted(archives(manual), key=lambda path: path.name != official.file):
        try:
            source = Source(path)
            if any(source.has(name) for name in official.members):
                return source
        except UserError as error:
            broken = broken or error
    if broken:
        raise broken
    raise UserError(f"--manual_dir={manual} has none of {', '.join(official.members[:4])}; {official.advice}")


def archives(folder):
    """Returns the paths of the archives in a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(_ARCHIVES) and path.is_file())


@contextlib.contextmanager
def _unpacked(file):
    """Gives the content of a binary file object, uncompressed where it begins as a compressed file does."""
    start = file.read(8)
    file.seek(0)
    opener = next((function for magic, function in _OPENERS if start.startswith(magic)), None)
    with opener(file) if opener else contextlib.nullcontext(file) as stream:
        yield stream


def _zip_members(path):
    archive = zipfile.ZipFile(path)
    return {name: functools.partial(archive.open, name) for name in archive.namelist() if not name.endswith("/")}


def _tar_members(path):
    """Reads the archive to its very end: one that was cut off is refused whatever is missing."""
    members = {}
    with path.open("rb") as file, _unpacked(file) as stream:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                if member.isfile():
                    members[member.name.removeprefix("./")] = archive.extractfile(member).read()
        while stream.read(1 << 20):
            pass
    return {name: functools.partial(io.BytesIO, data) for name, data in members.items()}
