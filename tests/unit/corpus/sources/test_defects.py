"""Defects that files have: what is tolerated in one spelling is tolerated in all, and damage is said with its place."""

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row
from tests.unit.corpus.exports import HEAD, TAIL, page
from tests.unit.corpus.sources.reading import Read

from bertwright.corpus.errors import SourceError

FRAME = zstandard.ZstdCompressor().compress
SKIPPED = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"  # as pzstd writes before each frame
PACKINGS: list[Callable[[bytes], bytes]] = [bytes, bz2.compress, gzip.compress, lzma.compress, FRAME]


def put(folder: Path, data: bytes, name: str = "a") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def export(*titles: str, head: str = HEAD) -> bytes:
    return (head + "".join(page(i, title, f"A {title} szövege.") for i, title in enumerate(titles)) + TAIL).encode()


@each_row(
    ("written", "text", "replaced"),
    [
        (b"Egy \x01 h\xc3\xadd", "Egy \ufffd híd", 1),
        (b"Egy &#1; h\xc3\xadd", "Egy \ufffd híd", 1),
        (b"Egy &#x0; &#xD800; h\xc3\xadd", "Egy \ufffd \ufffd híd", 2),
        (b"Egy \xff h\xc3\xadd", "Egy \ufffd híd", 1),
        (b"Egy &#99999999; &#xFFFE; \xff\x02 h\xc3\xadd", "Egy \ufffd \ufffd \ufffd\ufffd híd", 4),
        (b"Egy&nbsp;h&iacute;d", "Egy híd", 0),
        (b"Egy &notanentity; h&#237;d", "Egy &notanentity; híd", 0),
        (b"R&D &amp; &lt;b>h&amp;#237;d", "R&D & híd", 0),
        ("Egy \ufffd &nosuch; híd".encode(), "Egy \ufffd &nosuch; híd", 0),
    ],
)
def test_a_character_that_xml_does_not_allow_is_tolerated_in_any_spelling(
    tmp_path: Path, written: bytes, text: str, replaced: int
) -> None:
    long = b" Egy hossz\xc3\xba mondat." * 200
    data = export("Híd").replace("A Híd szövege.".encode(), written + long)
    found = Read(put(tmp_path, data), tmp_path)
    assert found.texts[0][0].startswith(text) and found.counts["replaced_characters"] == replaced


def test_a_dump_in_another_encoding_is_refused_like_text(tmp_path: Path) -> None:
    titles = [f"hídfő {i}" for i in range(50)]
    data = export(*titles).decode().replace("ő", "ö").encode("latin-1")
    with pytest.raises(SourceError, match=r"not valid UTF-8 at byte .*iconv"):
        Read(put(tmp_path, data), tmp_path)
    with pytest.raises(SourceError, match=r"not valid UTF-8 at byte .*iconv"):
        Read(put(tmp_path, bz2.compress(data)), tmp_path)


@each_row("pack", PACKINGS)
def test_exports_of_one_wiki_may_follow_each_other(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    header = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\n'
    found = Read(put(tmp_path, pack(export("A", "B")) + pack(header + export("C"))), tmp_path)
    assert found.facts("title") == ["A", "B", "C"] and found.states[-1]["ended"]


def test_exports_that_follow_each_other_are_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.pieces.PLAIN_BYTES", 300)
    monkeypatch.setattr("bertwright.corpus.sources.pieces.BZ2_BYTES", 10)
    first, second = export("A", "B"), export("C", "D")
    assert Read(put(tmp_path, first + second), tmp_path).facts("title") == ["A", "B", "C", "D"]
    streams = [part for data in (first, second) for part in data.replace(b"  <page>", b"|  <page>").split(b"|")]
    found = Read(put(tmp_path, b"".join(map(bz2.compress, streams))), tmp_path)
    assert found.facts("title") == ["A", "B", "C", "D"] and found.states[-1]["ended"]


def test_exports_of_two_wikis_in_one_file_are_refused(tmp_path: Path) -> None:
    other = export("C", head=HEAD.replace("huwiki", "plwiki"))
    with pytest.raises(SourceError, match="holds exports of two wikis, 'huwiki' and 'plwiki'. Give each"):
        Read(put(tmp_path, export("A") + other), tmp_path)


@each_row("parts", [PACKINGS[1:], [FRAME, lambda data: SKIPPED + FRAME(data)]])
def test_compressed_parts_may_follow_each_other(tmp_path: Path, parts: list[Callable[[bytes], bytes]]) -> None:
    for pack in parts:
        data = b"".join(pack(f"Az {i}. rész.\n\n".encode()) for i in range(3))
        assert len(Read(put(tmp_path, data), tmp_path).texts) == 3


def test_the_place_of_a_damaged_stream_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.corpus.sources.pieces.BZ2_BYTES", 2000)
    pages = [page(i, f"{i}. híd", f"{i * 7919} " * 99) for i in range(40)]
    streams = [bz2.compress(part.encode()) for part in [HEAD, *pages, TAIL]]
    whole = b"".join(streams)
    at = sum(map(len, streams[:31])) + 40
    path = put(tmp_path, whole[:at] + b"\0\1\2\3" + whole[at + 4 :], "a.bz2")
    with pytest.raises(SourceError, match=r"damaged before byte ([\d,]+) .* before is ") as caught:
        Read(path, tmp_path)
    place = int(str(caught.value).partition("before byte ")[2].partition(" ")[0].replace(",", ""))
    assert at < place <= len(whole) and "29. híd" in str(caught.value)
    single = bytearray(gzip.compress("".join([HEAD, *pages, TAIL]).encode()))
    single[len(single) // 2] ^= 255
    with pytest.raises(SourceError, match=r"damaged before byte|The last whole one"):
        Read(put(tmp_path, bytes(single), "b.gz"), tmp_path)


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return stream.getvalue()


def test_the_files_of_an_archive_are_read_one_after_the_other(tmp_path: Path) -> None:
    lines = {f"huwiki_{i}.ndjson": f'{{"text": "Az {i}. rész."}}'.encode() for i in range(3)}
    data = archive({"._huwiki_0.ndjson": b"\0\1\2", "a/_SUCCESS": b"", **lines})
    for pack in PACKINGS:
        found = Read(put(tmp_path, pack(data)), tmp_path)
        assert found.texts == [[f"Az {i}. rész."] for i in range(3)]
        assert found.source.files[0].is_tar
    cut = Read(put(tmp_path, gzip.compress(data)[:-20], "a.tar.gz"), tmp_path)
    assert not cut.states[-1]["ended"]
    found = Read(put(tmp_path, data[: data.index(b"2. r")], "a.tar"), tmp_path)
    assert found.texts == [["Az 0. rész."]] and not found.states[-1]["ended"]


def test_half_of_a_surrogate_pair_in_utf16_is_replaced_and_counted(tmp_path: Path) -> None:
    text = "\ufeffEgy \ud83d híd.\n\nKét híd 😀.\n"
    found = Read(put(tmp_path, text.encode("utf-16-le", "surrogatepass")), tmp_path)
    assert found.texts == [["Egy \ufffd híd."], ["Két híd 😀."]] and found.counts["replaced_characters"] == 1


def test_a_zero_byte_is_a_defect_like_any_other(tmp_path: Path) -> None:
    assert Read(put(tmp_path, b"Egy \0h\xc3\xadd." + b" Sok sz\xc3\xb3." * 300), tmp_path).texts[0][0][:8] == "Egy híd."
    with pytest.raises(SourceError, match="byte 1 is zero"):
        Read(put(tmp_path, b"E\0g\0y\0 \0h\0"), tmp_path)
