"""Files that only stand for data kept elsewhere are named, whatever they are called."""

from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources.detect import examine

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12345\n"
DVC = b"outs:\n- md5: 1f2e3d\n  size: 12\n  path: wiki.xml.bz2\n"
TORRENT = b"d8:announce35:udp://tracker.example.org:6969/4:infod6:lengthi12e4:name3:abcee" + b"\xff" * 9000
NAMES = ("a", "a.txt", "a.xml.bz2", "a.parquet", "a.json.gz", "a.html")


@each_row(
    ("data", "reason"),
    [
        (LFS, "a pointer of Git LFS, not the data itself. Run `git lfs pull`"),
        (b"/annex/objects/SHA256E-s12--ab.xml.bz2\n", "a pointer of git-annex.*`git annex get"),
        (b"../../.git/annex/objects/aa/bb/SHA256E-s12--ab/SHA256E-s12--ab\n", "a pointer of git-annex"),
        (DVC, "a pointer of DVC.*`dvc pull"),
        (TORRENT, "a torrent.*BitTorrent"),
        (b"[InternetShortcut]\r\nURL=https://dumps.wikimedia.org/\r\n", "a shortcut"),
        (b'<?xml version="1.0"?><metalink xmlns="urn:x"><file/></metalink>', "a metalink.*aria2c"),
        (b'<?xml version="1.0"?>\n<Error><Code>NoSuchKey</Code></Error>', "the error message of a server"),
        (b'{"error":"Repository not found"}', "the error message of a server"),
        (b'{\n "message": "Not Found",\n "documentation_url": "https://x"\n}', "the error message of a server"),
        (b"404: Not Found", "the error message of a server"),
        (b"Entry not found", "the error message of a server"),
        (b"Access denied\n", "the error message of a server"),
        (b"da39a3ee5e6b4b0d3255bfef95601890afd80709\n", "a checksum"),
        (b"da39a3ee5e6b4b0d3255bfef95601890afd80709  huwiki.xml.bz2\n" * 99, "a list of checksums"),
        (b"<html><head><title>403 Forbidden</title></head><body>x</body></html>", "HTML page|error message"),
    ],
)
def test_it_is_named_whatever_it_is_called(tmp_path: Path, data: bytes, reason: str) -> None:
    for name in NAMES:
        (tmp_path / name).write_bytes(data)
        for format in ("auto", "parquet") if not data.startswith(b"<html") else ("auto",):
            with pytest.raises(SourceError, match=reason):
                examine(tmp_path / name, format)


@each_row(
    "data",
    [
        b'{"message": "Szia!"}\n',
        b'{"error": "Not found", "text": "A page."}\n',
        b"A lap nem volt ott.\n",
        b"d\nEgy mondat.\n",
        b"404 f\xc5\x91 vett r\xc3\xa9szt a gy\xc5\xb1l\xc3\xa9sen.\n",
        b"The page was not found by anyone who looked for it in the library of the old town.\n",
        LFS + b"Egy sor.\n" * 999,
    ],
)
def test_text_that_looks_a_little_like_it_is_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    assert examine(tmp_path / "a").format in ("text", "jsonl")


def test_a_link_of_git_annex_and_an_unfinished_download(tmp_path: Path) -> None:
    (tmp_path / "a.xml.bz2").symlink_to("../.git/annex/objects/aa/bb/SHA256E-s12--ab/x")
    with pytest.raises(SourceError, match="git annex get a.xml.bz2"):
        examine(tmp_path / "a.xml.bz2")
    (tmp_path / "b.xml.bz2.part").write_bytes(b"BZh91AY&SY")
    with pytest.raises(SourceError, match=r"unfinished download \(\.part\)"):
        examine(tmp_path / "b.xml.bz2.part")


@each_row(
    ("magic", "remedy"),
    [
        (b"ZIM\x04", "zimdump"),
        (b"%PDF-1.5", "pdftotext"),
        (b"LZIP\x01", "lzip -d"),
        (b"SQLite format 3\0", "JSON lines"),
    ],
)
def test_a_file_that_cannot_be_read_says_how_to_convert_it(tmp_path: Path, magic: bytes, remedy: str) -> None:
    (tmp_path / "a").write_bytes(magic + b"\0" * 99)
    with pytest.raises(SourceError, match=remedy):
        examine(tmp_path / "a")
