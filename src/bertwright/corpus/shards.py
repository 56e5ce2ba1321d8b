"""The final shards: the kept documents in source order, divided into shards of about equally many sentences.

A document is in the shard floor(sentences before it x shards / all sentences), so the files depend neither on the
pieces of the sources nor on the number of workers. Copies of a document stay together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import write_atomic
from bertwright.core.task_records import is_done, mark_done
from bertwright.corpus.decisions import DECISIONS, KEPT_PARAGRAPHS
from bertwright.corpus.part import DOCUMENTS, PARAGRAPHS, read_array, unpack
from bertwright.corpus.text import FACTS, TEXT

# Level 6 makes files 10 % smaller, but took 0.03 s longer on the Ukrainian sample.
_LEVEL = 3


@dataclass(frozen=True)
class Shard:
    """One shard to write."""

    number: int
    """Index of the shard."""
    start: int
    stop: int
    """The shard has the documents with at least `start` and fewer than `stop` sentences of the corpus before them."""
    parts: tuple[tuple[Path, int], ...]
    """The parts with these documents, without suffix, and the number of sentences of the corpus before each part."""
    folder: Path

    @property
    def files(self) -> tuple[Path, Path]:
        """The paths of its text and of its metadata."""
        stem = self.folder / f"{self.number:05d}"
        return stem.with_suffix(TEXT), stem.with_suffix(FACTS)

    @property
    def note(self) -> Path:
        """The path of the note that both files are written; a temporary file, like the parts."""
        return self.parts[0][0].with_name(f"shard-{self.number:05d}.json")


def plan(parts: tuple[Path, ...], shard_bytes: int, count: int | None, folder: Path) -> list[Shard]:
    """Divide the documents, in order, into `count` shards, or into as many as needed for `shard_bytes` each.

    Reads one part's rows at a time. Raises `DataError` where there are too few documents to fill `count` shards.
    """
    sizes = [_totals(part) for part in parts]
    sentences, size = (sum(column) for column in zip(*sizes, strict=True))
    shards = count or -(-size // shard_bytes)
    firsts = [0, *accumulate(count_of_part for count_of_part, _ in sizes)]
    members = _members(parts, firsts, shards)
    if count and len(members) < count:
        # Fewer shards may again leave some empty; the number suggested must be one that can be filled.
        while len(members) < shards:
            shards, members = len(members), _members(parts, firsts, len(members))
        raise DataError(
            f"corpus.shards={count} is too many: the {sentences:,} remaining sentences are in too few documents, "
            f"and documents are never split. Set corpus.shards={shards}, or remove the key."
        )
    # Rounded up: floor(before x shards / all) is k or more where `before` is at least k x all / shards.
    bounds = [-(-k * sentences // shards) for k in range(shards + 1)]
    # A document larger than a shard leaves the next shard empty; empty shards are skipped.
    return [Shard(i, bounds[k], bounds[k + 1], tuple(members[k]), folder) for i, k in enumerate(sorted(members))]


def _members(parts: tuple[Path, ...], firsts: list[int], shards: int) -> dict[int, list[tuple[Path, int]]]:
    """For each non-empty shard, the parts in which a document of it begins, each with the sentences before the part.

    `firsts` has the number of sentences before each part, followed by that of all parts.
    """
    members: dict[int, list[tuple[Path, int]]] = {}
    for part, first in zip(parts, firsts[:-1], strict=True):
        rows = read_array(part.with_suffix(DECISIONS))
        places = _starts(rows, first)[rows["copies"] > 0] * shards // firsts[-1]
        for shard in sorted(set(places.tolist())):
            members.setdefault(shard, []).append((part, first))
    return members


def write_shard(shard: Shard) -> None:
    """Write the text and the metadata of one shard, unless both files exist and are unchanged."""
    if is_done(shard.note):
        return
    compressors = [zstandard.ZstdCompressor(level=_LEVEL).compressobj() for _ in range(2)]
    done: tuple[list[bytes], list[bytes]] = ([], [])
    for part, first in shard.parts:
        for document in _documents(part, first, shard):
            for compressor, blocks, data in zip(compressors, done, document, strict=True):
                blocks.append(compressor.compress(data))
    for path, compressor, blocks in zip(shard.files, compressors, done, strict=True):
        write_atomic(path, b"".join([*blocks, compressor.flush()]))
    mark_done(shard.note, shard.files)


def _totals(part: Path) -> tuple[int, int]:
    """The numbers of sentences and bytes that a part adds to the corpus, including copies."""
    rows = read_array(part.with_suffix(DECISIONS))
    return int((rows["copies"] * rows["sentences"]).sum()), int((rows["copies"] * rows["bytes"]).sum())


def _starts(rows: NDArray[np.void], first: int) -> NDArray[np.int64]:
    """[documents] the number of sentences of the corpus before each document."""
    sentences = rows["copies"] * rows["sentences"]
    starts: NDArray[np.int64] = first + np.cumsum(sentences) - sentences
    return starts


def _documents(part: Path, first: int, shard: Shard) -> Iterator[tuple[bytes, bytes]]:
    """Yield the text and the metadata of each document of one part that is in the shard, with all copies."""
    rows, documents, paragraphs, kept_paragraphs = (
        read_array(part.with_suffix(suffix)) for suffix in (DECISIONS, DOCUMENTS, PARAGRAPHS, KEPT_PARAGRAPHS)
    )
    starts = _starts(rows, first)
    rows_of_shard = np.flatnonzero((rows["copies"] > 0) & (starts >= shard.start) & (starts < shard.stop))
    text = unpack(part.with_suffix(TEXT))
    lines = unpack(part.with_suffix(FACTS)).splitlines(keepends=True)
    ends = np.cumsum(documents["paragraphs"])
    # A paragraph begins after all paragraphs before it and the blank lines of the documents before its own.
    blank_lines = np.repeat(np.arange(len(documents)), documents["paragraphs"])
    begins = np.cumsum(paragraphs["bytes"]) - paragraphs["bytes"] + blank_lines
    for row in rows_of_shard.tolist():
        own = slice(ends[row] - documents["paragraphs"][row], ends[row])
        kept, line = kept_paragraphs[own], lines[row]
        pieces = zip(begins[own][kept].tolist(), paragraphs["bytes"][own][kept].tolist(), strict=True)
        body = b"".join(text[begin : begin + size] for begin, size in pieces) + b"\n"
        if not kept.all():
            line = _keep_paragraphs(line, paragraphs["sentences"][own], kept)
        yield body * int(rows["copies"][row]), line * int(rows["copies"][row])


def _keep_paragraphs(line: bytes, sentences: NDArray[np.int32], kept: NDArray[np.bool_]) -> bytes:
    """The metadata of a document after its paragraphs are reduced to the `kept` ones.

    `sentences` is the number of sentences of each paragraph. A heading is dropped where nothing of its section is left.
    """
    facts: dict[str, Any] = json.loads(line)
    before = np.concatenate([[0], np.cumsum(np.repeat(kept, sentences))]).tolist()
    facts["paragraphs"] = [before[start] for start, stays in zip(facts["paragraphs"], kept, strict=True) if stays]
    sections = pairwise([*facts["headings"], [len(before) - 1, ""]])
    facts["headings"] = [
        [before[start], title] for (start, title), (stop, _) in sections if before[stop] > before[start]
    ]
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
