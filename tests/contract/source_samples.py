"""A small sample file of every source format, in any compression: a new format needs one writer in `SAMPLES`."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.unit.corpus.exports import HEAD, TAIL, article, page

from bertwright.corpus.config import SourceKind
from bertwright.corpus.sources.format import SourceFormat
from bertwright.corpus.sources.known import FORMATS

DOCUMENTS = 40
TEXT_SIZES = {"pieces.PLAIN_BYTES": 2000, "pieces.BZ2_BYTES": 100, "pieces.BLOCK": 700, "file.BLOCK": 700}
"""Settings that split even the smallest text into many pieces, by their names in `bertwright.corpus.sources`."""


@dataclass(frozen=True)
class Sample:
    """How to write a test file of a format."""

    write: Callable[[Path, int], None]
    """Writes the given number of documents, plain; no two begin alike, each has some 300 bytes. They have no ids
    unless the format requires them: their positions then serve as ids and must not depend on how the file is split."""
    small: Mapping[str, int] = field(default_factory=lambda: TEXT_SIZES)
    """Piece sizes that split forty documents into several pieces."""


def text_of(number: int) -> str:
    """The text of document `number`."""
    return f"Ez a {number}. irat első sora, élő szó.\n" + f"A következő sora {number * 7919 % 1000} szóval több. " * 5


def write_dump(path: Path, number: int) -> None:
    pages = [page(i, f"{i}. híd", article(i)) for i in range(1, number + 1)]
    path.write_text(HEAD + "".join(pages) + TAIL, encoding="utf-8")


def write_text(path: Path, number: int) -> None:
    path.write_text("\n\n".join(map(text_of, range(number))) + "\n", encoding="utf-8")


def write_jsonl(path: Path, number: int) -> None:
    rows = ({"title": f"{i}. irat", "text": text_of(i)} for i in range(number))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_cirrus(path: Path, number: int) -> None:
    texts = ({"title": f"{i}. irat", "namespace": 0, "wiki": "huwiki", "text": text_of(i)} for i in range(number))
    pairs = (({"index": {"_type": "_doc"}}, text) for text in texts)
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for pair in pairs for one in pair), "utf-8")


def write_html(path: Path, number: int) -> None:
    texts = ("".join(f"<p>{line}</p>\n" for line in text_of(i).splitlines()) for i in range(number))
    pages = (
        f"<!DOCTYPE html>\n<html><head><title>{i}. irat</title></head>\n<body>\n{text}</body></html>\n"
        for i, text in enumerate(texts)
    )
    path.write_text("".join(pages), encoding="utf-8")


def write_wikiextractor(path: Path, number: int) -> None:
    heads = (f'<doc id="{i}" url="https://hu.wikipedia.org/wiki?curid={i}" title="{i}. irat">' for i in range(number))
    texts = (f"{head}\n{i}. irat\n\n{text_of(i)}\n\n</doc>\n" for i, head in enumerate(heads))
    path.write_text("".join(texts), encoding="utf-8")


def table(number: int) -> Any:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'bertwright[formats]'")
    return pyarrow.table({"text": [*map(text_of, range(number))]})


def write_parquet(path: Path, number: int) -> None:
    rows = table(number)
    from pyarrow import parquet

    parquet.write_table(rows, path, row_group_size=10)


def write_arrow(path: Path, number: int) -> None:
    rows = table(number)
    import pyarrow

    with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=10)


SAMPLES: dict[SourceKind, Sample] = {
    "dump": Sample(write_dump),
    "text": Sample(write_text),
    "jsonl": Sample(write_jsonl),
    "cirrus": Sample(write_cirrus),
    "html": Sample(write_html),
    "wikiextractor": Sample(write_wikiextractor),
    "parquet": Sample(write_parquet, {"tables.PIECE_BYTES": 1000, "tables._ROWS": 7}),
    "datasets": Sample(write_arrow, {"tables.PIECE_BYTES": 1000}),
}


def sample_of(kind: SourceKind) -> Sample:
    """The sample of a format; fails with a message that says where to add one if there is none."""
    if kind not in SAMPLES:
        pytest.fail(f"the format {kind!r} has no sample: write one in SAMPLES of tests/contract/source_samples.py")
    return SAMPLES[kind]


Pack = Callable[[bytes], bytes]
PACKAGINGS: dict[str, tuple[Pack, str, str]] = {
    "plain": (bytes, "plain", "utf-8"),
    "bz2": (bz2.compress, "bz2", "utf-8"),
    "bz2 streams": (lambda data: b"".join(map(bz2.compress, (data[:3000], data[3000:]))), "bz2", "utf-8"),
    "gz": (lambda data: gzip.compress(data, mtime=0), "gz", "utf-8"),
    "xz": (lzma.compress, "xz", "utf-8"),
    "zst": (zstandard.ZstdCompressor().compress, "zst", "utf-8"),
    "utf-16": (lambda data: data.decode().encode("utf-16"), "plain", "utf-16"),
    "utf-16 xz": (lambda data: lzma.compress(data.decode().encode("utf-16")), "xz", "utf-16"),
}
"""The compressions of a text, and how each is recognised."""

of_sources = pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.kind)
packed = pytest.mark.parametrize(
    ("each", "packaging"),
    [(each, name) for each in FORMATS for name in (PACKAGINGS if each.is_text else ("plain",))],
    ids=lambda value: value.kind if isinstance(value, SourceFormat) else value,
)


def written(kind: SourceKind, folder: Path, packaging: str = "plain", documents: int = DOCUMENTS) -> Path:
    """Write a file of `documents` documents, with the suffix of its compression."""
    pack, compression, _ = PACKAGINGS[packaging]
    path = folder / (kind if compression == "plain" else f"{kind}.{compression}")
    sample_of(kind).write(path, documents)
    path.write_bytes(pack(path.read_bytes()))
    return path


def cut_small(each: SourceFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Split test files of this format into several pieces."""
    for name, size in sample_of(each.kind).small.items():
        monkeypatch.setattr(f"bertwright.corpus.sources.{name}", size)
