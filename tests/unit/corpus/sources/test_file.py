import bz2
import lzma
import os
import random
from pathlib import Path

import pytest

from bertwright.core.errors import DataError
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.file import Reader, Source, examine, sampled_hash

DUMP = b"<mediawiki>\n  <page></page>\n</mediawiki>\n"


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.xml", DUMP, ("plain", "utf-8", "dump")),
        ("no suffix", b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- made by hand -->\n' + DUMP, ("plain", "utf-8", "dump")),
        ("a.xml.bz2", bz2.compress(DUMP), ("bz2", "utf-8", "dump")),
        ("wrong.xz", bz2.compress(DUMP), ("bz2", "utf-8", "dump")),
        ("a.xml.xz", lzma.compress(DUMP.decode().encode("utf-16")), ("xz", "utf-16", "dump")),
        ("a.txt", "Élő szöveg.".encode(), ("plain", "utf-8", "text")),
        ("a.txt.xz", lzma.compress(b"Text."), ("xz", "utf-8", "text")),
        ("b.txt", "Szöveg <b>.".encode("utf-16"), ("plain", "utf-16", "text")),
    ],
)
def test_content_decides_not_the_name(tmp_path: Path, name: str, data: bytes, expected: tuple[str, str, str]) -> None:
    source = examine(put(tmp_path, name, data))
    assert (source.compression, source.encoding, source.content) == expected


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.xml.bz2", b"", "is empty"),
        ("empty inside.xml.bz2", bz2.compress(b""), "empty bz2 file"),
        ("page.bz2", b"<!DOCTYPE html>\n<html><body>404</body></html>", "an HTML page: the download failed"),
        ("page.xml", b"\n<html lang='en'><body>404</body></html>", "is an HTML page"),
        ("random.bz2", random.Random(1).randbytes(5000), "is no bz2 file"),
        ("random.xml", random.Random(2).randbytes(5000), "not a MediaWiki export"),
        ("random", b"ab\0" + random.Random(3).randbytes(5000), "byte 2 is zero"),
        ("feed.xml", b'<?xml version="1.0"?><rss></rss>', "root element is <rss>"),
        ("dtd.xml", b'<?xml version="1.0"?><!DOCTYPE mediawiki []><mediawiki/>', "document type"),
        ("a.xml.gz", b"\x1f\x8b\x08\x00abc", "gzip file"),
        ("cut.xml.xz", lzma.compress(DUMP)[:20], "cut in its first block"),
        ("cut.xml.bz2", bz2.compress(DUMP)[:30], "cut in its first block"),
        ("wide.txt", "abc".encode("utf-32"), "UTF-32"),
        ("damaged.xml.bz2", bz2.compress(DUMP)[:-12] + b"x" * 12, "damaged before byte"),
    ],
)
def test_what_is_no_source_is_one_clear_error(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=reason) as caught:
        examine(put(tmp_path, name, data))
    assert str(tmp_path) in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        examine(tmp_path / "absent.xml")
    with pytest.raises(DataError, match="directory"):
        examine(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_folder(tmp_path: Path) -> None:
    path = put(tmp_path, "a.xml", DUMP)
    tmp_path.chmod(0)
    try:
        with pytest.raises(DataError, match="Permission denied"):
            examine(path)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("compression", ["bz2", "xz"])
def test_reader_decodes_all_streams_and_marks_a_cut_end(tmp_path: Path, compression: str) -> None:
    pack = bz2.compress if compression == "bz2" else lzma.compress
    text = random.Random(4).randbytes(3000)
    data = pack(text) + pack(b"") + pack(text[::-1])
    source = Source(put(tmp_path, "a", data), compression, "utf-8", "dump")  # type: ignore[arg-type]
    reader = Reader(source)
    assert b"".join(reader) == text + text[::-1]
    assert not reader.cut and reader.position == len(data)
    source.path.write_bytes(data[:-40])
    reader = Reader(source)
    assert (text + text[::-1]).startswith(b"".join(reader))
    assert reader.cut


def test_highly_compressed_bytes_come_in_small_blocks(tmp_path: Path) -> None:
    data = bz2.compress(bytes(30_000_000))
    blocks = Reader(Source(put(tmp_path, "a", data), "bz2", "utf-8", "dump"))
    sizes = [len(block) for block in blocks]
    assert sum(sizes) == 30_000_000
    assert max(sizes) <= 2**20


def test_utf16_is_read_in_any_byte_order_and_its_faults_have_a_place(tmp_path: Path) -> None:
    for data in ("\ufeffhíd".encode("utf-16-be"), "híd".encode("utf-16")):
        assert b"".join(Reader(examine(put(tmp_path, "a.txt", data)))).decode() == "híd"
    lone = "ab".encode("utf-16") + b"\x00\xdc\x00\xdc"
    with pytest.raises(SourceError, match="not valid UTF-16 at byte 6"):
        b"".join(Reader(examine(put(tmp_path, "a.txt", lone))))


def test_the_sampled_hash_is_of_content_and_size(tmp_path: Path) -> None:
    data = random.Random(6).randbytes(9_000_000)
    first = sampled_hash(put(tmp_path, "a", data))
    assert sampled_hash(put(tmp_path, "b", data)) == first
    assert sampled_hash(put(tmp_path, "c", data + b"x")) != first
    assert sampled_hash(put(tmp_path, "d", data[:-1] + b"\0")) != first
    assert sampled_hash(put(tmp_path, "e", b"abc")) != sampled_hash(put(tmp_path, "f", b"abd"))


def test_the_sampled_hash_misses_a_change_between_the_blocks(tmp_path: Path) -> None:
    data = bytearray(random.Random(6).randbytes(9_000_000))
    first = sampled_hash(put(tmp_path, "a", bytes(data)))
    data[65_536 + 100] ^= 1  # between the first block and the second
    assert sampled_hash(put(tmp_path, "b", bytes(data))) == first
    data[65_535] ^= 1
    assert sampled_hash(put(tmp_path, "c", bytes(data))) != first


def test_the_head_of_a_hostile_file_costs_no_more_than_its_length(tmp_path: Path) -> None:
    """`<??>` repeated made a backtracking pattern try every way to read it: 40 of them would never have ended."""
    path = tmp_path / "dump.xml"
    path.write_bytes(b"<??>" * 200 + b"1")
    with pytest.raises(DataError, match="is not a MediaWiki export"):
        examine(path)
