"""Files that were made, or happened, to cost more than their length: time and memory stay in proportion."""

import bz2
import gzip
import tracemalloc
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from tests.rows import each_row
from tests.unit.corpus.exports import HEAD, TAIL, article, page

from bertwright.core.errors import RecipeError
from bertwright.corpus import paragraphs
from bertwright.corpus.characters import compose
from bertwright.corpus.config import CorpusConfig, FilterConfig
from bertwright.corpus.paragraphs import ParagraphRules
from bertwright.corpus.run import run
from bertwright.corpus.sources.compression import MAGIC, Compression, Decoder
from bertwright.corpus.sources.text_formats import BLANK_LINES

PACK = {"zst": zstandard.ZstdCompressor().compress, "bz2": bz2.compress, "gz": gzip.compress}


class Counting(bytes):
    """Bytes that count how many of them are copied by slicing."""

    copied = 0

    def __getitem__(self, index: object) -> bytes:  # type: ignore[override]
        part = super().__getitem__(index)  # type: ignore[index]
        Counting.copied += len(part) if isinstance(part, bytes) else 1
        return part


@each_row("compression", PACK)
def test_thousands_of_empty_streams_are_read_once_each(compression: Compression, tmp_path: Path) -> None:
    """The rest of a block is not copied again for every stream that ends in it."""
    pack = PACK[compression]
    data = pack(b"first ") + pack(b"") * 5_000 + pack(b"last")
    Counting.copied = 0
    decoder = Decoder(tmp_path / "x", compression, 2**20)
    assert b"".join(decoder.blocks(iter([Counting(data)]))) == b"first last" and not decoder.cut
    assert Counting.copied <= len(data)
    assert compression in MAGIC


@each_row("padding", [b"\0" * 512, b"\0" * 10_000])
def test_padding_between_and_after_streams_is_skipped(padding: bytes, tmp_path: Path) -> None:
    def blocks(data: bytes) -> Iterator[bytes]:
        yield from (data[i : i + 700] for i in range(0, len(data), 700))

    data = gzip.compress(b"one ") + padding + gzip.compress(b"two") + padding
    decoder = Decoder(tmp_path / "x.gz", "gz", 2**20)
    assert b"".join(decoder.blocks(blocks(data))) == b"one two" and not decoder.cut


def test_a_gap_of_a_million_lines_takes_no_memory_for_each() -> None:
    data = b"a\n" + b"\n" * 1_000_000 + b" \t\r\n b"
    tracemalloc.start()
    (found,) = BLANK_LINES.finditer(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data[found.end() :] == b"b" and peak < 2**20


def test_combining_marks_without_end_are_cut() -> None:
    """Sorting them takes time with their square: minutes for these, hours for a megabyte."""
    marks = "\u0301\u0316" * 200_000
    text = compose(f"Za{marks}z\ne\u0301")
    first, second = text.split("\n")
    assert second == "é"
    assert sum(bool(unicodedata.combining(c)) for c in first) <= 31 and first.startswith("Z") and first.endswith("z")
    assert compose(first) == first


@each_row("length", [1, 2, 29, 30, 31, 32, 33, 47, 48])
@each_row("before", [0, 5, 15])
def test_marks_of_a_language_stay(length: int, before: int) -> None:
    text = "x" * before + "a" + "\u0316" * length
    kept = len(compose(text)) - before - 1
    assert kept == length if length <= 30 else 30 <= kept <= 31


def test_a_pattern_that_takes_for_ever_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paragraphs, "_LONGEST_SEARCH", 0.2)
    rules = ParagraphRules(FilterConfig(patterns=("fine", "(a|aa)+$")))
    assert rules.apply("All is FINE here.", counts := Counter()) == "" and counts["removed.boilerplate"] == 1
    assert rules.apply("nothing of it", Counter()) == "nothing of it"
    with pytest.raises(
        RecipeError, match=r"corpus.filter.patterns: '\(a\|aa\)\+\$' was searched for 0.2 seconds in one"
    ):
        rules.apply("a" * 5_000 + "b", Counter())


def test_a_bad_byte_in_a_dump_is_replaced_and_counted(tmp_path: Path) -> None:
    pages = [page(n, f"Híd {n}", article(n)).encode() for n in range(1, 7)]
    pages[1] = pages[1].replace("folyó".encode(), b"foly\xf3", 1)
    pages[4] = pages[4].replace("híd".encode(), b"h\x01d", 1)
    (tmp_path / "dump.xml").write_bytes(b"".join([HEAD.encode(), *pages, TAIL.encode()]))
    said: list[str] = []

    class Notes:
        def say(self, message: str) -> None:
            said.append(message)

        def progress(self, stage: str, done: float, total: float, unit: str, **more: object) -> None: ...

        def record(self, row: dict[str, object]) -> None: ...

    config = CorpusConfig(source={"path": str(tmp_path / "dump.xml")}, language="hu", workers=1)
    corpus = run(config, tmp_path / "corpus", Notes())
    assert corpus.counts["documents"] == 6
    assert any(
        "has 2 bytes or characters that are not valid in text; each was replaced by U+FFFD" in line for line in said
    )
