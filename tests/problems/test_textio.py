"""The one line reader and writer."""

import gzip
import io
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems import textio
from ut_keras.errors import UserError


def _write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\ntwo", ["one", "", "two"]),
        (b"one\n\n", ["one", ""]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"a\rb\nc", ["a\rb", "c"]),
        (b"a\x0bb\x0cc\x1cd\n", ["a\x0bb\x0cc\x1cd"]),
        ("a\x85b\u2028c\u2029d\n".encode(), ["a\x85b\u2028c\u2029d"]),
        (b"a\0b\nc\n", ["a\0b", "c"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        (b"\xef\xbb\xbf\n", [""]),
    ],
)
def test_line_ends_at_lf_alone(tmp_path, data, lines):
    assert list(textio.read_lines(_write(tmp_path / "file", data))) == lines
    assert list(textio.read_lines(io.BytesIO(data))) == lines
    assert list(textio.read_lines(_write(tmp_path / "packed", gzip.compress(data)))) == lines


def test_byte_that_is_not_utf8_is_named_with_file_line_and_offset(tmp_path):
    path = _write(tmp_path / "latin.txt", b"one\ntwo\nth\xe9e\n")
    with pytest.raises(UserError, match=r"latin\.txt: line 3: byte 0xe9 at offset 10 is not UTF-8"):
        list(textio.read_lines(path))


def test_offset_counts_the_byte_order_mark(tmp_path):
    path = _write(tmp_path / "file", b"\xef\xbb\xbfa\xff\n")
    with pytest.raises(UserError, match="line 1: byte 0xff at offset 4 "):
        list(textio.read_lines(path))


def test_bad_byte_of_a_stream_names_the_stream():
    with pytest.raises(UserError, match="standard input: line 2: byte 0xff at offset 2 "):
        list(textio.read_lines(io.BytesIO(b"a\n\xff")))


def test_cut_gzip_file_is_an_error(tmp_path):
    whole = gzip.compress(b"".join(b"line %d\n" % i for i in range(1000)))
    path = _write(tmp_path / "cut.gz", whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cut\.gz: broken gzip file"):
        list(textio.read_lines(path))


def test_missing_file_and_folder_are_errors(tmp_path):
    with pytest.raises(UserError, match="cannot read .*none: No such file"):
        list(textio.read_lines(tmp_path / "none"))
    with pytest.raises(UserError, match="cannot read .*: Is a directory"):
        list(textio.read_lines(tmp_path))


@pytest.mark.parametrize("name", ["new/folder/out.txt", "out.gz"])
def test_written_lines_are_read_again(tmp_path, name):
    textio.write_lines(tmp_path / name, ["a", "", "c\rd", "e\u00e9"])
    assert list(textio.read_lines(tmp_path / name)) == ["a", "", "c\rd", "e\u00e9"]


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))))
def test_any_lines_survive(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "file"
    textio.write_lines(path, lines)
    # A CR at the end of a line and a mark at the start of the file are not text.
    expected = [line.removesuffix("\r") for line in lines]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert list(textio.read_lines(path)) == expected


def test_failed_writing_keeps_the_old_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old\n")

    def lines():
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        textio.write_lines(path, lines())
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_line_feed_in_a_line_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds a line feed"):
        textio.write_lines(tmp_path / "out.txt", ["a\nb"])
    assert not list(tmp_path.iterdir())


def test_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write .*out.txt: Not a directory|File exists"):
        textio.write_text(tmp_path / "file" / "out.txt", "text")


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\xef\xbb\xbf", []),
        (b"a\r\n\xff\xe9b\nc", [("a", ""), ("\ufffd\ufffdb", "byte 0xff at offset 3 is not UTF-8"), ("c", "")]),
        (b"\xef\xbb\xbfa\n\n", [("a", ""), ("", "")]),
        (b"12345\n123456\n1", [("12345", ""), ("", "it is longer than 5 bytes"), ("1", "")]),
        (b"12345\r\n123456\r\n1", [("12345", ""), ("", "it is longer than 5 bytes"), ("1", "")]),
        (b"\xef\xbb\xbf12345", [("12345", "")]),
        (b"x" * 1000 + b"\n2\n", [("", "it is longer than 5 bytes"), ("2", "")]),
        (b"1\n" + b"x" * 1000, [("1", ""), ("", "it is longer than 5 bytes")]),
        (b"x" * 10 + b"\n" + b"x" * 20 + b"\n", [("", "it is longer than 5 bytes")] * 2),
    ],
)
def test_lines_that_may_be_anything_are_as_many(tmp_path, data, lines):
    assert [tuple(line) for line in textio.read_any_lines(io.BytesIO(data), longest=5)] == lines
    packed = _write(tmp_path / "packed", gzip.compress(data))
    assert [tuple(line) for line in textio.read_any_lines(packed, longest=5)] == lines


@given(st.lists(st.binary(max_size=12)), st.integers(1, 12))
def test_readers_agree_on_the_number_of_lines_and_on_those_that_are_right(parts, longest):
    data = b"\n".join(parts)
    found = list(textio.read_any_lines(io.BytesIO(data), longest))
    replaced = data.decode("utf-8", "replace").encode()
    expected = list(textio.read_lines(io.BytesIO(data if data.isascii() else replaced)))
    assert len(found) == len(expected)
    for line, text in zip(found, expected, strict=True):
        assert bool(line.fault) or line.text == text


def test_a_long_line_is_not_held():
    class Zeros(io.RawIOBase):
        """200 MB without a line feed."""

        left = 200_000_000

        def readable(self):
            return True

        def readinto(self, buffer):
            size = min(len(buffer), self.left)
            buffer[:size] = b"0" * size
            self.left -= size
            return size

    tracemalloc.start()
    lines = list(textio.read_any_lines(io.BufferedReader(Zeros())))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [line.fault for line in lines] == ["it is longer than 1,048,576 bytes"]
    assert peak < 20_000_000
