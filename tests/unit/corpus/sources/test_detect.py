import bz2
import gzip
import lzma
import os
import random
from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.detect import examine

DUMP = b"<mediawiki>\n  <page></page>\n</mediawiki>\n"


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@each_row(
    ("name", "data", "expected"),
    [
        ("a.xml", DUMP, ("plain", "utf-8", "dump")),
        ("no suffix", b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- made by hand -->\n' + DUMP, ("plain", "utf-8", "dump")),
        ("a.xml.bz2", bz2.compress(DUMP), ("bz2", "utf-8", "dump")),
        ("wrong.xz", bz2.compress(DUMP), ("bz2", "utf-8", "dump")),
        ("a.xml.xz", lzma.compress(DUMP.decode().encode("utf-16")), ("xz", "utf-16", "dump")),
        ("a.txt", "Élő szöveg.".encode(), ("plain", "utf-8", "text")),
        ("a.txt.xz", lzma.compress(b"Text."), ("xz", "utf-8", "text")),
        ("a.txt.gz", gzip.compress(b"Text.", mtime=0), ("gz", "utf-8", "text")),
        ("a", zstandard.ZstdCompressor().compress(DUMP), ("zst", "utf-8", "dump")),
        ("a.txt", b'{"text": "x"}\n{"text": ', ("plain", "utf-8", "jsonl")),
        ("a.txt", b'{"text": "' + b"x" * 5000, ("plain", "utf-8", "jsonl")),
        ("a.json.gz", gzip.compress(b'\n {"text": "x"}\n', mtime=0), ("gz", "utf-8", "jsonl")),
        ("a", '{"text": "x"}'.encode("utf-16"), ("plain", "utf-16", "jsonl")),
        ("a.jsonl", b'{"text": "x" "id": 1}\n{"text": "y"}\n', ("plain", "utf-8", "jsonl")),
        ("a.json", b'{\n "text": "x"\n}\n', ("plain", "utf-8", "jsonl")),
        ("a", b"{}\n", ("plain", "utf-8", "jsonl")),
        ("a", b"{curly} words\n", ("plain", "utf-8", "text")),
        ("a", b"{" * 5000, ("plain", "utf-8", "text")),
        ("wiki_00", b'<doc id="1" url="u" title="t">\nt\n\n</doc>\n', ("plain", "utf-8", "wikiextractor")),
        ("a", b"<doc>", ("plain", "utf-8", "text")),
        ("a", b"Title, text\nA ship, a man, a text.\nShips.\n", ("plain", "utf-8", "text")),
        ("a", "text\nEgy mondat, még egy.\nKét mondat.\n".encode(), ("plain", "utf-8", "text")),
        ("a", "Tegnap, amikor\nmentünk, ő\njött, én\n".encode(), ("plain", "utf-8", "text")),
        ("a", b"PAR1....", ("plain", "utf-8", "parquet")),
        ("a", b"\xff\xff\xff\xff....", ("plain", "utf-8", "datasets")),
        ("b.txt", "Szöveg <b>.".encode("utf-16"), ("plain", "utf-16", "text")),
    ],
)
def test_content_decides_not_the_name(tmp_path: Path, name: str, data: bytes, expected: tuple[str, str, str]) -> None:
    file = examine(put(tmp_path, name, data))
    assert (file.compression, file.encoding, file.format) == expected


@each_row(
    ("name", "data", "reason"),
    [
        ("empty.xml.bz2", b"", "is empty"),
        ("empty inside.xml.bz2", bz2.compress(b""), "empty bz2 file"),
        ("page.bz2", b"<!DOCTYPE html>\n<html><body>404</body></html>", "an HTML page: the download failed"),
        (
            "page.xml",
            b"\n<html lang='en'><body>404</body></html>",
            r"/page\.xml is an HTML page, not a dump: the download failed\. Download it again, or, if its text is "
            r'wanted, rename it to end in \.html or set corpus\.source\.format = "html"\.$',
        ),
        ("Dump", b"<!doctype html><title>404 Not Found</title>", "an HTML page, not a dump: the download failed"),
        ("random.bz2", random.Random(1).randbytes(5000), "is not a bz2 file"),
        ("random.xml", random.Random(2).randbytes(5000), "not a MediaWiki export"),
        ("random", b"ab\0" + random.Random(3).randbytes(5000), "byte 2 is zero"),
        ("feed.xml", b'<?xml version="1.0"?><rss></rss>', "root element is <rss>"),
        ("dtd.xml", b'<?xml version="1.0"?><!DOCTYPE mediawiki []><mediawiki/>', "document type"),
        ("a.xml.gz", b"\x1f\x8b\x08\x00abc", "empty gz file, or truncated in its first block"),
        ("b.xml.gz", b"\x1f\x8b\x08\xff" + b"a" * 90, "damaged before byte"),
        ("a.zip", b"PK\x03\x04", "zip file"),
        ("a.feather", b"ARROW1\0\0", "Arrow .random access. file"),
        ("a.json", b'[\n {"text": "x"}]', "one JSON array.*jq"),
        (
            "a.csv",
            b"text\nOne.\nTwo.\n",
            "with the columns 'text', and such tables are not supported as text.*train.phases.N.data.*to_parquet",
        ),
        ("a.csv.gz", gzip.compress(b"nr,what\n1,One.\n", mtime=0), "columns 'nr', 'what'"),
        ("a.TSV", b"nr\twhat\n1\tOne, two.\n", "columns 'nr', 'what'"),
        ("a", b'id,text\n1,"One, ""two""\nand three."\n2,Four.\n', "columns 'id', 'text'"),
        ("a.txt", b"id;title;text\n1;A;Egy.\n2;B;Kett\xc5\x91.\n", "columns 'id', 'title', 'text'.*format = .text."),
        ("cut.xml.xz", lzma.compress(DUMP)[:20], "truncated in its first block"),
        ("cut.xml.bz2", bz2.compress(DUMP)[:30], "truncated in its first block"),
        ("wide.txt", "abc".encode("utf-32"), "UTF-32"),
        ("old.txt", b"One.\rTwo.\r\rThree.\r", r"old\.txt ends its lines with carriage returns alone.*`tr '\\r' "),
        ("damaged.xml.bz2", bz2.compress(DUMP)[:-12] + b"x" * 12, "damaged before byte"),
    ],
)
def test_invalid_source_is_one_clear_error(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
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


@each_row(
    ("format", "data", "found"),
    [
        ("jsonl", b"{curly}", "jsonl"),
        ("text", b'{"text": "x"}\n', "text"),
        ("text", b"<html>", "text"),
        ("text", b"id,text\n1,One.\n2,Two.\n", "text"),
        ("wikiextractor", b'{"text": "x"}\n', "jsonl"),
        ("dump", DUMP, "dump"),
    ],
)
def test_a_format_that_is_named_is_taken(tmp_path: Path, format: str, data: bytes, found: str) -> None:
    assert examine(put(tmp_path, "a", data), format).format == found  # type: ignore[arg-type]


@each_row(("format", "data"), [("dump", b"text"), ("parquet", b"text"), ("wikiextractor", DUMP)])
def test_a_format_that_is_named_and_wrong_is_refused(tmp_path: Path, format: str, data: bytes) -> None:
    with pytest.raises(SourceError, match=f"is not a {format} file: it looks like .*Remove corpus.source.format"):
        examine(put(tmp_path, "a", data), format)  # type: ignore[arg-type]


def test_head_of_a_hostile_file_is_read_in_linear_time(tmp_path: Path) -> None:
    """`<??>` repeated made a backtracking pattern try every way to read it: 40 of them would never have ended."""
    path = tmp_path / "dump.xml"
    path.write_bytes(b"<??>" * 200 + b"1")
    with pytest.raises(DataError, match="is not a MediaWiki export"):
        examine(path)
