"""Finds repetitions in a fixed order: exact copies of documents, near-copies (`near`), then repeated paragraphs.

Exact copies are found without an index of the entire corpus in memory. Extraction stores a row with a hash for each
document and paragraph. The rows are grouped by hash (see `id_files`), and the ids of all but the first row of each hash
are recorded for dropping: the first in source order stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertwright.core.tasks import Executor
from bertwright.corpus.config import DeduplicateConfig
from bertwright.corpus.decisions import MarkPart, copies, in_kept_documents, mark_part
from bertwright.corpus.dedup.id_files import (
    SUFFIX,
    Dropped,
    Gather,
    bucket,
    fences,
    gather,
    groups,
    ids_of,
    prefix_bits,
    write_run,
    write_sorted,
)
from bertwright.corpus.dedup.minhash import SignPart, sign_part
from bertwright.corpus.dedup.near import find_near
from bertwright.corpus.part import DOCUMENTS, PARAGRAPHS, is_written, map_array, read_array

_RUN = (1, 3)
"""A run is one table of (high, low, id)."""


@dataclass(frozen=True)
class Compared:
    """Selects the rows to compare."""

    table: str
    """Suffix of the rows: `DOCUMENTS` or `PARAGRAPHS`."""
    measure: str = "words"
    least: int = 0
    """Only paragraphs of at least `least` "words" or "bytes" (see `measure`) are compared."""


@dataclass(frozen=True)
class SortRows:
    """Neighbouring parts whose rows are to be sorted by hash."""

    paths: tuple[Path, ...]
    """Paths of the parts, without suffix."""
    parts: range
    compared: Compared
    out: Path


@dataclass(frozen=True)
class Bucket:
    """Rows of all runs whose hash begins with `prefix` (of `bits` bits)."""

    runs: tuple[Path, ...]
    prefix: int
    bits: int
    groups: Sequence[range]
    """Groups of parts; each gets its own list in the end."""
    out: Path


def find_copies(parts: tuple[Path, ...], compared: Compared, folder: Path, executor: Executor) -> Dropped:
    """The copies among the documents, or among the paragraphs of documents kept so far."""
    name = compared.table.removesuffix(".npy").removeprefix(".")
    sizes = [len(map_array(path.with_suffix(compared.table))) for path in parts]
    cut = groups(sizes)
    sorts = [SortRows(parts[g.start : g.stop], g, compared, folder / f"run-{name}-{g.start:06d}{SUFFIX}") for g in cut]
    executor.map(sort_rows, sorts, "corpus")
    bits = prefix_bits(sum(sizes))
    runs = tuple(task.out for task in sorts)
    buckets = [Bucket(runs, n, bits, cut, folder / f"copies-{name}-{bits}-{n:04x}{SUFFIX}") for n in range(2**bits)]
    executor.map(find_in_bucket, buckets, "corpus")
    copies_found = tuple(task.out for task in buckets)
    gathers = [
        Gather(copies_found, n, len(cut), folder / f"drop-{name}-{g.start:06d}{SUFFIX}") for n, g in enumerate(cut)
    ]
    executor.map(gather, gathers, "corpus")
    return Dropped(tuple(task.out for task in gathers), tuple(group.start for group in cut))


def sort_rows(task: SortRows) -> None:
    """Write a run, unless the file exists."""
    if is_written(task.out):
        return
    columns = [np.empty((3, 0), np.uint64)]
    for part, path in zip(task.parts, task.paths, strict=True):
        rows = read_array(path.with_suffix(task.compared.table))
        if task.compared.table == PARAGRAPHS:
            compared = in_kept_documents(path) & (rows[task.compared.measure] >= task.compared.least)
        else:
            # Undrawn documents are not compared: one could displace a drawn copy, and neither would stay.
            compared = copies(path) > 0
        chosen = np.flatnonzero(compared)
        columns.append(np.stack([rows["high"][chosen], rows["low"][chosen], ids_of(part, chosen)]))
    run = np.concatenate(columns, axis=1)
    write_run(task.out, run[None, :, np.argsort(run[0])])


def find_in_bucket(task: Bucket) -> None:
    """Write the sorted ids to drop, unless the file exists."""
    if not is_written(task.out):
        high, low, ids = bucket(task.runs, _RUN, task.prefix, task.bits)
        # The id is the last sort key: among equal hashes the first in source order leads and stays.
        order = np.lexsort((ids, low, high))
        high, low, ids = high[order], low[order], ids[order]
        same = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        write_sorted(task.out, np.sort(ids[1:][same])[None, None], fences(task.groups))


# Bytes that count as a word in scripts without spaces between words: two characters of these scripts.
_BYTES = 6


def find_repetitions(
    config: DeduplicateConfig, parts: tuple[Path, ...], folder: Path, executor: Executor, *, spaced: bool
) -> Dropped:
    """Compare all documents of all parts; each task has one bucket in memory, and no process has all documents.

    Writes the outcomes of the documents next to each part and returns the paragraphs to drop. `spaced`: whether the
    language puts spaces between words. The text is compared as extracted, so no step depends on the cuts of another; a
    paragraph that stays because it was first may still be lost with a document that becomes too short.
    """
    copies = near = paragraphs = Dropped()
    if config.documents:
        copies = find_copies(parts, Compared(DOCUMENTS), folder, executor)
    if config.near_documents:
        executor.map(sign_part, (SignPart(part, spaced) for part in parts), "corpus")
        near = find_near(parts, config.similarity, folder, executor)
    # Before the paragraphs: paragraphs of a dropped document must not displace others.
    executor.map(mark_part, (MarkPart(part, n, copies, near) for n, part in enumerate(parts)), "corpus")
    if config.paragraphs:
        measure, least = ("words", config.min_words) if spaced else ("bytes", _BYTES * config.min_words)
        paragraphs = find_copies(parts, Compared(PARAGRAPHS, measure, least), folder, executor)
    return paragraphs
