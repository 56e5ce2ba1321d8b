"""Small exports in any packaging, and parts."""

import bz2
import gzip
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import zstandard
from tests.conftest import SHARED
from tests.unit.corpus.exports import HEAD, TAIL, article, page

from bertwright.corpus.decisions import DrawPart, draw_part
from bertwright.corpus.part import PartWriter


@pytest.fixture
def export() -> Callable[..., bytes]:
    """`export(pages)`: the XML of pages made by `page`."""

    def build(pages: Sequence[str], *, head: str = HEAD, tail: str = TAIL) -> bytes:
        return (head + "".join(pages) + tail).encode()

    return build


@pytest.fixture
def bridges() -> list[str]:
    """Forty articles as `<page>` elements."""
    return [page(i, f"{i}. híd", article(i)) for i in range(1, 41)]


@pytest.fixture
def repetitions(bridges: list[str]) -> list[str]:
    """A copy, a near-copy, and an article of its own with a paragraph of the fifth bridge."""
    near = page(101, "Hasonló híd", article(3).replace("gyalogosok", "biciklisek"))
    shared = article(5).split("\n\n")[0].removeprefix("'''A 5. híd'''")
    return [bridges[3], near, page(102, "Új híd", article(45) + f"\n'''A 5. híd'''{shared}\n")]


@pytest.fixture
def new_page() -> Callable[..., str]:
    return page


@pytest.fixture
def multistream() -> Callable[..., bytes]:
    """Pages in multistream bz2: head, `per_stream` pages a stream, tail."""

    def build(pages: Sequence[str], per_stream: int = 5) -> bytes:
        groups = ["".join(pages[i : i + per_stream]) for i in range(0, len(pages), per_stream)]
        return b"".join(bz2.compress(part.encode()) for part in [HEAD, *groups, TAIL])

    return build


@pytest.fixture
def packagings(export: Callable[..., bytes], multistream: Callable[..., bytes]) -> Callable[..., dict[str, bytes]]:
    """The same pages as every kind of file that can be read."""

    def build(pages: Sequence[str]) -> dict[str, bytes]:
        plain = export(pages)
        return {
            "a.xml": plain,
            "b.xml.bz2": bz2.compress(plain),
            "c.xml.bz2": multistream(pages),
            "d.xml.xz": lzma.compress(plain),
            "e.xml": plain.decode().encode("utf-16"),
            "f": b"\xef\xbb\xbf" + plain,
            "g.xml.bz2": b"".join(bz2.compress(plain[i : i + 3000]) for i in range(0, len(plain), 3000)),
            "h.xml.xz": lzma.compress(plain.decode().encode("utf-16")),
            "i.xml.gz": gzip.compress(plain[:9000]) + gzip.compress(plain[9000:]),
            "j.xml.zst": zstandard.ZstdCompressor().compress(plain),
        }

    return build


@pytest.fixture
def write_part() -> Callable[..., Path]:
    """`write_part(path, documents, weight, seed)`: a part whose documents are lists of paragraphs, which are lists of
    sentences, and how often each is drawn."""

    def write(path: Path, documents: Sequence[Sequence[Sequence[str]]], weight: float = 1, seed: int = 1) -> Path:
        writer = PartWriter(path)
        for number, paragraphs in enumerate(documents):
            sentences = [sentence for paragraph in paragraphs for sentence in paragraph]
            starts = [sum(map(len, paragraphs[:i])) for i in range(len(paragraphs))]
            headings = [(start, f"heading {i}") for i, start in enumerate(starts) if i % 2]
            writer.add(sentences, starts, {"id": number, "headings": headings})
        writer.finish()
        draw_part(DrawPart(path, weight, seed))
        return path

    return write


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even the smallest file into many pieces."""
    monkeypatch.setattr("bertwright.corpus.sources.pieces.PLAIN_BYTES", 2000)
    monkeypatch.setattr("bertwright.corpus.sources.pieces.BZ2_BYTES", 100)
    monkeypatch.setattr("bertwright.corpus.sources.file.BLOCK", 700)
    monkeypatch.setattr("bertwright.corpus.sources.pieces.BLOCK", 700)


@pytest.fixture
def shared() -> Path:
    """The folder of real data, where this checkout has one beside it."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no real data at {SHARED}; set BERTWRIGHT_SHARED")
    return SHARED / "data"
