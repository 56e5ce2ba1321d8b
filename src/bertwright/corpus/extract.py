"""Extraction of one piece of a source into one part: its articles are cleaned, split into sentences and filtered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from bertwright.core.task_records import is_done, mark_done
from bertwright.corpus.citation_filter import detect_references
from bertwright.corpus.config import FilterConfig
from bertwright.corpus.dropped import DroppedWriter, dropped_line
from bertwright.corpus.filter import DocumentFilter
from bertwright.corpus.links import LinkWriter
from bertwright.corpus.paragraphs import ParagraphRules
from bertwright.corpus.part import PartWriter
from bertwright.corpus.program import split_paragraphs
from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article, Paragraph
from bertwright.corpus.sources.known import documents, format_of
from bertwright.corpus.split import splitter

# Approximate number of characters split at once: an external splitter is started once per batch.
_BATCH = 2**20


def extract(job: ExtractJob) -> tuple[int, int]:
    """Build the part of `job.piece` unless it exists.

    Returns the number of bytes of the file that the piece covers, and the number of documents read by this call.
    """
    path = job.parts / job.piece.name
    counts: Counter[str] = Counter()
    if not is_done(path.with_suffix(".json")):
        state: dict[str, Any] = {}
        part, dropped = PartWriter(path), DroppedWriter(path)
        links = LinkWriter(path, job.site) if format_of(job.file.format).is_wiki else None
        _extract(job, Writers(part, dropped, links), counts, state)
        files = [*part.finish(), dropped.finish(), *([links.finish()] if links else [])]
        mark_done(path.with_suffix(".json"), files, {"counts": dict(sorted(counts.items())), **state})
    # Also where the part already existed: an earlier run may have been killed after writing the note and before this.
    for packed in filter(None, (job.piece.spool, job.piece.copy)):
        packed.unlink(missing_ok=True)
    return job.piece.progress, counts["documents"]


class Writers(NamedTuple):
    """What writes the files of a part."""

    part: PartWriter
    dropped: DroppedWriter
    links: LinkWriter | None
    """None if the source is no wiki."""


def _extract(job: ExtractJob, to: Writers, counts: Counter[str], state: dict[str, Any]) -> None:
    kept = 0
    for article, sentences, headings, starts, reason, language in judged(job, counts, state):
        counts["documents"] += 1
        facts = {**article.facts, "language": language or job.config.language, "headings": headings}
        if job.config.filter.keep_dropped:
            for why, paragraph in article.removed:
                to.dropped.add(kept, dropped_line(why, {**article.facts, "language": facts["language"]}, paragraph))
        if reason is None:
            counts["document_bytes"] += to.part.add(sentences, starts, facts)
            if to.links:
                to.links.add(article, sentences)
            kept += 1
            continue
        text = "\n".join(sentences)
        size = len(text.encode()) + 2 if sentences else 0  # its size in a shard
        counts["document_bytes"] += size
        counts[f"dropped.{reason}"] += 1
        counts[f"dropped_bytes.{reason}"] += size
        if job.config.filter.keep_dropped:
            to.dropped.add(kept, dropped_line(reason, {**facts, "paragraphs": starts}, text))


class Judged(NamedTuple):
    """An article after cleaning and splitting, with the verdict of the filter."""

    article: Article
    sentences: list[str]
    headings: list[tuple[int, str]]
    """The index of the sentence that follows each heading, and its title."""
    starts: list[int]
    """The indices of the sentences that begin a paragraph."""
    reason: str | None
    """Why the filter drops it; None if it is kept."""
    language: str


def judged(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Judged]:
    """Yield the articles of a piece as the corpus would have them, and whether it would; see `Documents`."""
    keep = DocumentFilter(job.config.filter, job.config.language)
    articles = _apply_rules(documents(job, counts, state), job.config.filter, counts)
    for article, split in _split(articles, _splitter(job)):
        sentences, headings, starts = _sentences(article.paragraphs, split)
        yield Judged(article, sentences, headings, starts, *keep.verdict(sentences))


def _apply_rules(articles: Iterable[Article], config: FilterConfig, counts: Counter[str]) -> Iterator[Article]:
    """Yield the articles after the paragraph rules; a removed paragraph is left with empty text, and listed."""
    rules, references = ParagraphRules(config), config.enabled and config.references == "drop"
    if not (rules.active or references):
        yield from articles
        return
    for article in articles:
        before, after = article.paragraphs, article.paragraphs
        removed = list[tuple[str, str]]()
        if references:
            cited = zip(before, detect_references(before), strict=True)
            # Emptied, not removed, so that the heading of the section can pass to the next remaining paragraph.
            after = [p._replace(text="") if is_cited else p for p, is_cited in cited]
            removed = [("removed.reference", old.text) for old, new in zip(before, after, strict=True) if old != new]
            if removed:
                counts["removed.reference"] += len(removed)
        if rules.active:
            after = [p._replace(text=_after_rules(p.text, rules, counts, removed)) if p.text else p for p in after]
        counts["removed_bytes"] += sum(len(text.encode()) + 1 for _, text in removed)
        yield replace(article, paragraphs=after, removed=tuple(removed))


def _after_rules(text: str, rules: ParagraphRules, counts: Counter[str], removed: list[tuple[str, str]]) -> str:
    """The text after the rules; "" if one of them removes it, which is then noted."""
    own = Counter[str]()
    result = rules.apply(text, own)
    counts.update(own)
    if not result:
        removed.append((next(key for key in own if key.startswith("removed.")), text))
    return result


def _split(
    articles: Iterable[Article], split: Callable[[list[str]], Iterable[list[str]]]
) -> Iterator[tuple[Article, Iterator[list[str]]]]:
    """Yield each article with an iterator over the sentences of its paragraphs.

    The caller must consume exactly one item per paragraph before it requests the next article.
    """
    for batch in _batches(articles):
        sentences = iter(split([paragraph.text for article in batch for paragraph in article.paragraphs]))
        # One iterator runs through the sentences of the whole batch, so each article must take its own in turn.
        for article in batch:
            yield article, sentences


def _batches(articles: Iterable[Article]) -> Iterator[list[Article]]:
    batch: list[Article] = []
    size = 0
    for article in articles:
        batch.append(article)
        size += sum(len(paragraph.text) for paragraph in article.paragraphs)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def _sentences(
    paragraphs: list[Paragraph], split: Iterator[list[str]]
) -> tuple[list[str], list[tuple[int, str]], list[int]]:
    """The sentences, the headings as (index of the sentence that follows, title), and the indices of the sentences
    that begin a paragraph.

    A heading is dropped where every paragraph of its section is empty.
    """
    sentences: list[str] = []
    headings: list[tuple[int, str]] = []
    starts: list[int] = []
    heading = None
    for paragraph in paragraphs:
        heading = paragraph.heading or heading
        # A paragraph without sentences must not leave an empty line: blank lines separate documents.
        if new := next(split):
            if heading:
                headings.append((len(sentences), heading))
                heading = None
            starts.append(len(sentences))
            sentences += new
    return sentences, headings, starts


def _splitter(job: ExtractJob) -> Callable[[list[str]], Iterable[list[str]]]:
    """The function that splits paragraphs into lists of sentences."""
    if job.whole_lines:
        # A line that a rule removed has no sentences: an empty sentence would split its document in two.
        return lambda lines: ([" ".join(line.split())] if line else [] for line in lines)
    if job.config.split.command:
        return partial(split_paragraphs, job.config.split)
    return partial(map, splitter(job.config.language))
