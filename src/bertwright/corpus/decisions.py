"""The decision on each document: its number of copies in the corpus, its outcome, and its kept paragraphs.

Documents are drawn by the weight of their source before any comparison. A document that is not drawn is not compared,
so it displaces no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import key, uniform
from bertwright.corpus.dedup.id_files import Dropped
from bertwright.corpus.dropped import dropped_line
from bertwright.corpus.part import DOCUMENTS, PARAGRAPHS, is_written, map_array, read_array, unpack, write_array
from bertwright.corpus.text import FACTS, TEXT

COPIES, OUTCOMES = ".copies.npy", ".outcomes.npy"
DECISIONS, KEPT_PARAGRAPHS = ".decisions.npy", ".kept-paragraphs.npy"
ROW = np.dtype([("outcome", "u1"), ("copies", "u1"), ("sentences", "<i8"), ("words", "<i8"), ("bytes", "<i8")])
"""Per document: its outcome, its number of copies in the corpus, and the size of one copy with the blank line after
it."""


class Outcome(IntEnum):
    """Whether a document is kept, or why not; the name in lower case is the reason recorded for a dropped document."""

    KEPT = 0
    DUPLICATE = 1
    """It has the same text as an earlier document."""
    NEAR_DUPLICATE = 2
    """It is similar to an earlier document."""
    EMPTIED = 3
    """Too few sentences remain without its repeated paragraphs."""
    NOT_DRAWN = 4
    """Its source has a weight below 1, and it was not drawn."""


@dataclass(frozen=True)
class DrawPart:
    """A part of a source with a weight."""

    part: Path
    weight: float
    seed: int


def draw_part(task: DrawPart) -> None:
    """Write how many copies of each document the corpus has, unless it exists: the integer part of the weight, and
    one more with the probability of its fraction, decided by the hash of the text."""
    out = task.part.with_suffix(COPIES)
    if not is_written(out):
        # Decided by the text, so that neither the split into parts nor another source changes what is drawn.
        hashes = read_array(task.part.with_suffix(DOCUMENTS))["high"]
        whole, rest = divmod(task.weight, 1)
        once_more = uniform(key("weight of the source", task.seed), hashes) < rest
        write_array(out, int(whole) + once_more.astype(np.uint8))


def copies(part: Path) -> NDArray[np.uint8]:
    """How many copies of each document [documents] the corpus has, if nothing else drops it."""
    drawn: NDArray[np.uint8] = read_array(part.with_suffix(COPIES)).astype(np.uint8)
    return drawn


@dataclass(frozen=True)
class MarkPart:
    """A part whose documents have been compared with all others."""

    part: Path
    number: int
    copies: Dropped
    near: Dropped


def mark_part(task: MarkPart) -> None:
    """Write the outcome so far of each document of a part, unless the file exists."""
    out = task.part.with_suffix(OUTCOMES)
    if not is_written(out):
        outcomes = np.full(len(map_array(task.part.with_suffix(DOCUMENTS))), Outcome.KEPT, np.uint8)
        outcomes[task.near.rows(task.number)] = Outcome.NEAR_DUPLICATE
        # After the near-copies: an exact copy is also a near-copy of its original, but is counted as exact.
        outcomes[task.copies.rows(task.number)] = Outcome.DUPLICATE
        outcomes[copies(task.part) == 0] = Outcome.NOT_DRAWN
        write_array(out, outcomes)


def in_kept_documents(part: Path) -> NDArray[np.bool_]:
    """Which paragraphs [paragraphs] of a part belong to documents kept so far."""
    documents = read_array(part.with_suffix(DOCUMENTS))
    return np.repeat(read_array(part.with_suffix(OUTCOMES)) == Outcome.KEPT, documents["paragraphs"])


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
    kept_paragraphs = in_kept_documents(task.part)
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


def list_dropped(part: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the row, and the line for `dropped/`, of each document that extraction kept and the corpus does not."""
    outcomes = read_array(part.with_suffix(DECISIONS))["outcome"]
    if not outcomes.any():
        return
    texts = unpack(part.with_suffix(TEXT)).decode().split("\n\n")
    facts = unpack(part.with_suffix(FACTS)).splitlines()
    for row in np.flatnonzero(outcomes).tolist():
        yield row, dropped_line(Outcome(outcomes[row]).name.lower(), json.loads(facts[row]), texts[row])
