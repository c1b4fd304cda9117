"""The line reader and writer under random bytes and text, and on real files with hostile characters."""

import gzip
import io
import os
import stat
import threading

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from problems import textio
from tests.problems.conftest import shared_folder
from ut_keras.errors import UserError

# What other readers take for the end of a line, a mark at the start, an end of text, or nothing.
HOSTILE = "\r\0\v\f\x1a\x1c\x1d\x1e\x85\u2028\u2029\ufeff\u200b\u2581 \t\n"
CHARACTERS = st.characters(exclude_characters="\n", exclude_categories=["Cs"])
LINES = st.lists(st.text(st.one_of(st.sampled_from(HOSTILE.replace("\n", "")), CHARACTERS), max_size=8), max_size=8)


def _reference(data):
    """The lines of `data` by the rules of the module's docstring, in another way: on the whole content."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    elif not data.endswith(b"\n"):
        return [line.removesuffix(b"\r") for line in lines[:-1]] + [lines[-1]]
    return [line.removesuffix(b"\r") for line in lines]


@settings(deadline=None)
@given(st.text(st.one_of(st.sampled_from(HOSTILE), CHARACTERS)))
@example("\ufeff")
@example("\ufeff\ufeffa\r\n\ufeff\r\r\n\r")
@example("no final newline\r")
def test_any_text_is_split_at_lf_alone(tmp_path_factory, text):
    data = text.encode()
    expected = [line.decode() for line in _reference(data)]
    assert list(textio.read_lines(io.BytesIO(data))) == expected
    path = tmp_path_factory.mktemp("text") / "file"
    for name, content in ((path, data), (path.with_suffix(".gz"), gzip.compress(data))):
        name.write_bytes(content)
        assert list(textio.read_lines(name)) == expected


@settings(deadline=None)
@given(LINES, st.sampled_from(["file", "file.gz"]), st.booleans())
def test_written_lines_come_back_and_the_bytes_are_known(tmp_path_factory, lines, name, windows):
    path = tmp_path_factory.mktemp("lines") / name
    written = [line + "\r" if windows else line for line in lines]
    textio.write_lines(path, written)
    content = path.read_bytes()
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    assert content == "".join(line + "\n" for line in written).encode()
    back = list(textio.read_lines(path))
    expected = [line.removesuffix("\r") for line in written]
    assert back == [line.removeprefix("\ufeff") if n == 0 else line for n, line in enumerate(expected)]
    assert [entry.name for entry in path.parent.iterdir()] == [name]


def _bad_byte(data):
    """(line, offset) of the first byte that is not UTF-8, found by decoding ever longer beginnings; None if all is."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1, error.start
    return None


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([b"a", b"\n", b"\r", "\u00e9".encode(), b"\xe9", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80"])
    )
)
def test_first_bad_byte_is_named_by_line_and_offset(parts):
    data = b"".join(parts)
    found = _bad_byte(data)
    if found is None:
        assert len(list(textio.read_lines(io.BytesIO(data)))) == len(_reference(data))
        return
    line, offset = found
    with pytest.raises(UserError) as error:
        list(textio.read_lines(io.BytesIO(data), "corpus.de"))
    assert str(error.value) == (f"corpus.de: line {line}: byte 0x{data[offset]:02x} at offset {offset} is not UTF-8")


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_lines_or_one_clear_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "file"
    path.write_bytes(data)
    try:
        lines = list(textio.read_lines(path))
    except UserError as error:
        assert str(path) in str(error) and "\n" not in str(error)
        assert _bad_byte(data) is not None
    else:
        assert [line.encode() for line in lines] == _reference(data)


@pytest.mark.parametrize("content", [b"plain text\n", b"", b"\x1f", b"\x1f\x8b", b"\x1f\x8b\x08not really"])
def test_name_that_promises_gzip_keeps_its_promise(tmp_path, content):
    path = tmp_path / "train.en.gz"
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"train\.en\.gz(: broken gzip file| is not a gzip file; unpacked text needs a)"
    ):
        list(textio.read_lines(path))


def test_gzip_files_one_after_the_other_are_one_text(tmp_path):
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"one\ntw") + gzip.compress(b"o\n"))
    assert list(textio.read_lines(path)) == ["one", "two"]


def test_half_of_a_surrogate_pair_is_a_clear_error_and_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match=r"cannot write .*out\.txt: '\\udc80' is half of a surrogate pair"):
        textio.write_lines(tmp_path / "out.txt", ["fine", "a\udc80"])
    assert not list(tmp_path.iterdir())


def test_device_or_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    textio.write_lines(pipe, ["one", "two"])
    reader.join(10)
    assert received == [b"one\ntwo\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real.txt")
    textio.write_lines(tmp_path / "link", ["one"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "one\n"


@pytest.mark.parametrize(
    ("year", "count"), [(2008, 2051), (2009, 2525), (2010, 2489), (2011, 3003), (2012, 3003), (2013, 3000)]
)
@pytest.mark.parametrize("language", ["de", "en"])
def test_news_test_sets_have_their_published_number_of_lines(year, count, language):
    folder = shared_folder("translation/wmt_newstest", "the WMT news test sets are")
    path = folder / f"newstest{year}.{language}.gz"
    assert sum(1 for _ in textio.read_lines(path)) == count
