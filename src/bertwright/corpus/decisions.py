"""The final decision on each document: its outcome, its number of copies in the corpus, and its kept paragraphs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertwright.corpus.dedup.id_files import Dropped
from bertwright.corpus.dedup.outcome import OUTCOMES, Outcome, copies, of_kept_documents
from bertwright.corpus.dropped import dropped_line
from bertwright.corpus.part import DOCUMENTS, PARAGRAPHS, is_written, read_array, unpacked, write_array
from bertwright.corpus.text import FACTS, TEXT

DECISIONS, KEPT_PARAGRAPHS = ".decisions.npy", ".kept-paragraphs.npy"
ROW = np.dtype([("outcome", "u1"), ("copies", "u1"), ("sentences", "<i8"), ("words", "<i8"), ("bytes", "<i8")])
"""Per document: its outcome, its number of copies in the corpus, and the size of one copy with the blank line after
it."""

_COUNTED = {
    Outcome.KEPT: "kept",
    Outcome.DUPLICATE: "duplicates",
    Outcome.NEAR_DUPLICATE: "near_duplicates",
    Outcome.EMPTIED: "emptied",
    Outcome.NOT_DRAWN: "not_drawn",
}
"""The name of the document count for each outcome."""


@dataclass(frozen=True)
class DecidePart:
    """A part, and the repeated paragraphs to drop from it."""

    part: Path
    number: int
    paragraphs: Dropped
    """Repeated paragraphs."""
    min_sentences: int
    """Fewest sentences of a document that has lost paragraphs."""


def decide_part(task: DecidePart) -> None:
    """Write a `ROW` per document, and whether each paragraph is kept (`KEPT_PARAGRAPHS`), unless both files exist."""
    decisions, kept = (task.part.with_suffix(suffix) for suffix in (DECISIONS, KEPT_PARAGRAPHS))
    if is_written(decisions) and is_written(kept):
        return
    documents = read_array(task.part.with_suffix(DOCUMENTS))
    paragraphs = read_array(task.part.with_suffix(PARAGRAPHS))
    repeated = task.paragraphs.rows(task.number)
    kept_paragraphs = of_kept_documents(task.part)
    kept_paragraphs[repeated] = False
    rows = np.zeros(len(documents), ROW)
    owner = np.repeat(np.arange(len(documents)), documents["paragraphs"])
    for name in ("sentences", "words", "bytes"):
        rows[name] = np.bincount(owner, paragraphs[name] * kept_paragraphs, len(documents))
    # The blank line after the document.
    rows["bytes"] += 1
    # Only documents that lost paragraphs: a short document that lost none has passed the filter unchanged.
    lost = np.bincount(owner[repeated], minlength=len(documents)) > 0
    outcomes = read_array(task.part.with_suffix(OUTCOMES))
    outcomes[lost & (rows["sentences"] < max(1, task.min_sentences))] = Outcome.EMPTIED
    rows["outcome"], rows["copies"] = outcomes, copies(task.part) * (outcomes == Outcome.KEPT)
    write_array(kept, kept_paragraphs)
    write_array(decisions, rows)


def tally(parts: Iterable[Path]) -> Counter[str]:
    """The number of documents of these parts by outcome, and their totals in the corpus, including copies."""
    counts = Counter[str]()
    for part in parts:
        rows = read_array(part.with_suffix(DECISIONS))
        kept_paragraphs = read_array(part.with_suffix(KEPT_PARAGRAPHS))
        kept = np.repeat(rows["outcome"] == Outcome.KEPT, read_array(part.with_suffix(DOCUMENTS))["paragraphs"])
        for outcome, count in _COUNTED.items():
            counts[count] += int((rows["outcome"] == outcome).sum())
        counts["duplicate_paragraphs"] += int((kept & ~kept_paragraphs).sum())
        counts["copies"] += int(rows["copies"].sum(dtype=np.int64))
        for count, name in (("sentences", "sentences"), ("words", "words"), ("text_bytes", "bytes")):
            counts[count] += int((rows["copies"] * rows[name]).sum())
    return counts


def tally_bytes(parts: Iterable[Path]) -> Counter[str]:
    """The bytes of the documents of these parts by outcome, each document counted once; repeated paragraphs of kept
    documents are counted separately.
    """
    counts = Counter[str]()
    for part in parts:
        rows, documents = read_array(part.with_suffix(DECISIONS)), read_array(part.with_suffix(DOCUMENTS))
        owner = np.repeat(np.arange(len(documents)), documents["paragraphs"])
        whole = np.bincount(owner, read_array(part.with_suffix(PARAGRAPHS))["bytes"], len(documents)) + 1
        for outcome, count in _COUNTED.items():
            counts[count] += int(whole[rows["outcome"] == outcome].sum())
        kept = rows["outcome"] == Outcome.KEPT
        repeated = int((whole[kept] - rows["bytes"][kept]).sum())
        counts["duplicate_paragraphs"] += repeated
        counts["kept"] -= repeated
    return counts


def list_dropped(part: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the row, and the line for `dropped/`, of each document that extraction kept and the corpus does not."""
    outcomes = read_array(part.with_suffix(DECISIONS))["outcome"]
    if not outcomes.any():
        return
    texts = unpacked(part.with_suffix(TEXT)).decode().split("\n\n")
    facts = unpacked(part.with_suffix(FACTS)).splitlines()
    for row in np.flatnonzero(outcomes).tolist():
        yield row, dropped_line(Outcome(outcomes[row]).name.lower(), json.loads(facts[row]), texts[row])
