"""Finds repetitions in a fixed order: copies of documents, near-copies, then paragraphs of the remaining documents."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.tasks import Executor
from bertwright.corpus.config import DeduplicateConfig
from bertwright.corpus.dedup.exact import Compared, find_copies
from bertwright.corpus.dedup.ids import Dropped
from bertwright.corpus.dedup.minhash import SignPart, sign_part
from bertwright.corpus.dedup.near import find_near
from bertwright.corpus.dedup.outcome import MarkPart, mark_part
from bertwright.corpus.part import DOCUMENTS, PARAGRAPHS

# Bytes that count as a word in scripts without spaces between words: two characters of these scripts.
_BYTES = 6


def find_repetitions(
    config: DeduplicateConfig, parts: tuple[Path, ...], folder: Path, executor: Executor, *, spaced: bool
) -> Dropped:
    """Compare all documents of all parts; each task has one bucket in memory, and no process has all documents.

    Writes the outcomes of the documents next to each part and returns the paragraphs to drop. `spaced` says whether the
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
