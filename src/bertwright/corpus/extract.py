"""One piece of a source becomes one part: its articles cleaned, split into sentences and filtered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from bertwright.core.files import write_json
from bertwright.corpus.article import Paragraph
from bertwright.corpus.filter import DocumentFilter
from bertwright.corpus.part import PartWriter
from bertwright.corpus.sources.articles import Job, articles
from bertwright.corpus.split import splitter


def extract(job: Job) -> int:
    """Make the part of `job.piece` unless it is there; returns the bytes of the file it stands for."""
    path = job.parts / job.piece.name
    if not path.with_suffix(".json").is_file():
        counts: Counter[str] = Counter()
        state: dict[str, Any] = {}
        part = PartWriter(path)
        _extract(job, part, counts, state)
        part.finish()
        write_json(path.with_suffix(".json"), {"counts": dict(sorted(counts.items())), **state})
    if job.piece.spool:
        job.piece.spool.unlink(missing_ok=True)
    return job.piece.progress


def _extract(job: Job, part: PartWriter, counts: Counter[str], state: dict[str, Any]) -> None:
    split = _line_splitter(job)
    keep = DocumentFilter(job.config.filter, job.config.language)
    for article in articles(job, counts, state):
        sentences, headings, starts = _sentences(article.paragraphs, split)
        reason, language = keep.verdict(sentences) if sentences else ("empty", "")
        counts["documents"] += 1
        if reason:
            counts[f"dropped.{reason}"] += 1
            continue
        facts = {**article.facts, "language": language or job.config.language, "headings": headings}
        part.add(sentences, starts, facts)


def _sentences(
    found: list[Paragraph], split: Callable[[str], list[str]]
) -> tuple[list[str], list[tuple[int, str]], list[int]]:
    """The sentences; (index, title) where one follows a heading; the indices of those that begin a paragraph."""
    sentences: list[str] = []
    headings: list[tuple[int, str]] = []
    starts: list[int] = []
    for paragraph in found:
        if paragraph.heading:
            headings.append((len(sentences), paragraph.heading))
        if new := split(paragraph.text):
            starts.append(len(sentences))
            sentences += new
    return sentences, headings, starts


def _line_splitter(job: Job) -> Callable[[str], list[str]]:
    if job.source.content == "text" and job.config.lines == "sentences":
        return lambda line: [" ".join(line.split())]
    return splitter(job.config.language)
