"""The one reader and writer of lines of text, and the one way to write a file.

Reading: a line ends at LF and nowhere else (a CR before it goes with it, so that files with CRLF
give the same lines; any other CR stays in the line); a final LF ends the last line and begins no
other; a byte order mark at the start of a file is dropped. A file whose name ends in .gz is
compressed with gzip and nothing else; under another name gzip is recognised by its first bytes,
which no text begins with. Writing: UTF-8, LF, compressed under a name that ends in .gz, to a
temporary name that is renamed at the end. Both are streams: no more than a line is held.
"""

import contextlib
import gzip
import hashlib
import io
import os
import pathlib
import secrets
import typing
import zlib

from ut_keras.errors import UserError

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_SUFFIX = ".gz"
LONGEST = 2**20  # bytes of a line that may be anything


class Line(typing.NamedTuple):
    """A line that may be broken.

    Attributes:
        text: the line, without its end; U+FFFD stands for what is not UTF-8, and what is too long is left out.
        fault: what is wrong with it; "" where nothing is.
    """

    text: str
    fault: str


def read_lines(source, name=None):
    """Yields the lines of `source` as str, without their ends.

    Args:
        source: a path, or a binary file object (standard input: `sys.stdin.buffer`).
        name: what to call a file object in messages.

    Raises:
        UserError: the file is missing or unreadable, its gzip stream is broken, its name ends in .gz and it is no
            gzip file, or bytes are not UTF-8; the message names file, line and byte offset in the (unpacked) file.
    """
    with _opened(source) as stream:
        yield from _lines(stream, name or ("standard input" if hasattr(source, "read") else str(source)))


def read_any_lines(source, longest=LONGEST):
    """Yields a `Line` for each line of `source`, whatever its bytes are; as many as `read_lines` would.

    Args:
        source: as for `read_lines`.
        longest: bytes of a line at most, its end not counted; a longer one is a fault, and is never held.

    Raises:
        UserError: as `read_lines`, of the file; never of one line.
    """
    with _opened(source) as stream:
        for data, offset, whole in _split(stream, longest):
            if not whole:
                yield Line("", f"it is longer than {longest:,} bytes")
                continue
            try:
                yield Line(data.decode("utf-8"), "")
            except UnicodeDecodeError as error:
                byte = f"byte 0x{data[error.start]:02x} at offset {offset + error.start} is not UTF-8"
                yield Line(data.decode("utf-8", "replace"), byte)


def digest(path):
    """Returns the sha256 of the bytes of a file: 32 bytes; UserError where it cannot be read."""
    with _reading(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def decode_utf8(data, name, line=1, offset=0):
    """Returns `data` as str; UserError with file, line and byte offset where it is not UTF-8.

    Args:
        data: bytes.
        name: the file, for the message.
        line: number of the first line in `data`, from 1.
        offset: offset of `data` in the file (bytes).
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise UserError(
            f"{name}: line {line}: byte 0x{data[error.start]:02x} at offset {offset + error.start} is not UTF-8"
        ) from None


def write_lines(path, lines):
    """Writes `lines` to `path`, compressed if it ends in .gz; the file appears only when it is complete."""
    with atomic_writer(path) as file:
        for line in lines:
            if "\n" in line:
                raise UserError(f"{path}: a line to be written holds a line feed: {line[:60]!r}")
            file.write(line + "\n")


def natural(text):
    """Returns the integer that `text` spells with one to nine digits of ASCII; None where it is anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def refuse_unwritable(path):
    """UserError when `path` cannot become a file; for use before the work whose result it is to hold."""
    path = pathlib.Path(path)
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a directory")
    there = next(parent for parent in path.absolute().parents if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise UserError(f"cannot write {path}: {there} is {'not writable' if there.is_dir() else 'a file'}")


def write_text(path, text):
    """Writes `text` to `path`; the file appears only when it is complete."""
    with atomic_writer(path) as file:
        file.write(text)


@contextlib.contextmanager
def atomic_writer(path, binary=False):
    """Gives a file that becomes `path` when the block ends, and vanishes if the block fails.

    The folder is made if it is missing; a link is followed, and a device or pipe is written to and not replaced.
    Text is UTF-8 with LF; a name that ends in .gz compresses.

    Raises:
        UserError: the file cannot be written, or the text holds half of a surrogate pair, which UTF-8 cannot hold.
    """
    path = pathlib.Path(path)
    with _writing(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            with open(path, "wb") as raw, _encoding(raw, path.name, binary) as file:
                yield file
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        place = path.resolve()
        temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}.incomplete")
        try:
            with open(temporary, "xb") as raw, _encoding(raw, path.name, binary) as file:
                yield file
            os.replace(temporary, place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _encoding(raw, name, binary):
    packed = gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) if name.endswith(_SUFFIX) else raw
    file = packed if binary else io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
    yield file
    file.flush()
    if not binary:
        file.detach()
    if packed is not raw:
        packed.close()


def _lines(stream, name):
    for number, (data, offset, _) in enumerate(_split(stream), 1):
        yield decode_utf8(data, name, number, offset)


def _split(stream, longest=None):
    """Yields (bytes of a line without its end, their offset in the stream, whether they are all of the line)."""
    most = -1 if longest is None else longest + len(_BOM) + 2  # with what is no content
    offset = 0
    while line := stream.readline(most):
        start = len(_BOM) if offset == 0 and line.startswith(_BOM) else 0
        end = len(line) - (2 if line.endswith(b"\r\n") else line.endswith(b"\n"))
        whole = longest is None or end - start <= longest
        if len(line) > start:  # a mark alone is no line
            yield line[start:end] if whole else b"", offset + start, whole
        offset += len(line)
        while not whole and line and not line.endswith(b"\n"):
            line = stream.readline(most)
            offset += len(line)


@contextlib.contextmanager
def _opened(source):
    """Gives the binary stream of `source`, as of `read_lines`, unpacked."""
    if hasattr(source, "read"):
        yield source
        return
    with _reading(source), open(source, "rb") as stream:
        compressed = stream.peek(2).startswith(_GZIP)
        if not compressed and str(source).endswith(_SUFFIX):
            raise UserError(f"{source} is not a gzip file; unpacked text needs a name without {_SUFFIX}")
        with gzip.open(stream) if compressed else stream as plain:
            yield plain


@contextlib.contextmanager
def _reading(path):
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: broken gzip file: {error}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


@contextlib.contextmanager
def _writing(path):
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    except UnicodeEncodeError as error:
        raise UserError(f"cannot write {path}: {error.object[error.start]!r} is half of a surrogate pair") from None
