"""The files of a dataset, in a folder or an archive, packed or not."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from problems import sources
from problems.sources import Official, Source
from ut_keras.errors import UserError

FILES = {"top/data/train.en": b"one\ntwo\n", "top/data/train.de": b"eins\nzwei\n", "top/other/strain.en": b"no\n"}
OFFICIAL = Official(url="http://example.org/set.zip", file="set.zip", members=("train.en", "train.de"))


def _write(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return path
    with tarfile.open(path, "w:" + path.suffix.removeprefix(".").replace("tar", "")) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def _folder(path, files):
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["set.zip", "set.tar", "set.tar.gz", "set.tar.xz", "set.tar.bz2", "folder"])
def test_folder_and_archives_hold_the_same(tmp_path, name):
    path = _folder(tmp_path / name, FILES) if name == "folder" else _write(tmp_path / name, FILES)
    source = Source(path)
    assert source.names() == sorted(FILES)
    assert source.lines("train.en") == ["one", "two"]  # not strain.en, which ends in it
    assert source.read("data/train.de") == FILES["top/data/train.de"]
    assert not source.has("rain.en")


@pytest.mark.parametrize("opener", [gzip, bz2, lzma])
def test_packed_member_is_unpacked(tmp_path, opener):
    suffix = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[opener]
    data = opener.compress(b"one\ntwo")
    assert Source(_folder(tmp_path / "a", {f"train.en{suffix}": data})).lines("train.en") == ["one", "two"]
    broken = Source(_folder(tmp_path / "b", {f"train.en{suffix}": data[:-4]}))
    with pytest.raises(UserError, match=f"train.en{suffix} is broken"):
        broken.read("train.en")


@pytest.mark.parametrize("fault", ["crc", "encrypted"])
def test_broken_member_of_a_zip_file_is_named(tmp_path, fault):
    path = _write(tmp_path / "set.zip", FILES)
    data = bytearray(path.read_bytes().replace(b"one", b"two", 1))
    if fault == "encrypted":
        for sign, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
            data[data.index(sign) + flags] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(UserError, match="set.zip: top/data/train.en is broken: "):
        Source(path).read("train.en")


def test_file_that_is_read_line_by_line_is_the_one_of_the_digest(tmp_path):
    source = Source(_folder(tmp_path / "a", {"a_old/list.tsv": b"old\n", "list.tsv.xz": lzma.compress(b"new\n")}))
    assert list(source.each_line("list.tsv")) == ["new"]
    assert source.digest(["list.tsv"]) == Source(_folder(tmp_path / "b", {"list.tsv": b"new\n"})).digest(["list.tsv"])


def test_digest_is_of_the_content_and_not_of_its_packing(tmp_path):
    plain = Source(_folder(tmp_path / "a", FILES)).digest(OFFICIAL.members)
    packed = {f"{name}.gz": gzip.compress(data) for name, data in FILES.items()}
    assert Source(_write(tmp_path / "set.zip", packed)).digest(OFFICIAL.members) == plain
    assert Source(_folder(tmp_path / "b", {**FILES, "top/data/train.en": b"1\n2\n"})).digest(OFFICIAL.members) != plain


def test_find_takes_folder_archive_or_the_file_itself(tmp_path):
    archive = _write(tmp_path / "by_hand" / "set.zip", FILES)
    _write(tmp_path / "by_hand" / "another.tar.gz", {"x/readme": b""})
    for place in (archive, tmp_path / "by_hand"):
        assert sources.find(place, OFFICIAL).path == archive
    assert sources.find(_folder(tmp_path / "unpacked", FILES), OFFICIAL).path == tmp_path / "unpacked"


@pytest.mark.parametrize("fault", ["missing", "empty", "cut", "text"])
def test_place_without_the_files_says_which_from_where(tmp_path, fault):
    place = tmp_path / "by_hand"
    if fault != "missing":
        place.mkdir()
    if fault == "cut":
        path = _write(place / "set.tar.gz", {**FILES, "large": bytes(range(256)) * 100})
        path.write_bytes(path.read_bytes()[:200])
    if fault == "text":
        (place / "set.zip").write_text("<html>Sorry</html>")
    with pytest.raises(UserError) as error:
        sources.find(place, OFFICIAL)
    wanted = "not a whole archive" if fault in ("cut", "text") else "put set.zip from http://example.org/set.zip"
    assert wanted in str(error.value) and "\n" not in str(error.value)
