"""All source formats: a new one needs a module in this package, an entry in `FORMATS` and its name in `SourceKind`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.plugins import load_plugin
from bertwright.corpus.config import SOURCES
from bertwright.corpus.errors import DamagedStreamError, SourceError
from bertwright.corpus.sources import pages, tables, text_formats, wiki
from bertwright.corpus.sources.file import ExtractJob
from bertwright.corpus.sources.format import Article, SourceFormat

FORMATS: tuple[SourceFormat, ...] = (
    tables.PARQUET,
    tables.DATASETS,
    wiki.FORMAT,
    text_formats.WIKIEXTRACTOR,
    text_formats.CIRRUS,
    pages.FORMAT,
    text_formats.JSONL,
    text_formats.TEXT,
)
"""In the order in which they are tried; the last one accepts any text."""

_FORMATS: dict[str, SourceFormat] = {known.kind: known for known in FORMATS}


@cache
def format_of(kind: str) -> SourceFormat:
    """The format with this name, built in or of another package; `RecipeError` if that is something else."""
    if kind in _FORMATS:
        return _FORMATS[kind]
    found = load_plugin(SOURCES, kind)
    if not isinstance(found, SourceFormat):
        raise RecipeError(
            f"corpus.source: format = {kind!r} is {found!r:.60}, not a bertwright.plugins.SourceFormat. Correct its "
            "package."
        )
    return replace(found, kind=kind)  # files have the name that the recipe uses


def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """Yield the documents of the piece, read by its format; only the last piece reports that a file is truncated."""
    ended, lost = True, 0
    for file in (job.file, *job.piece.more):
        whole = replace(job.piece, start=0, stop=file.size, more=()) if job.piece.more else job.piece
        yield from _documents(replace(job, file=file, piece=whole), counts, state)
        ended, lost = ended and state["ended"], lost + state["lost_bytes"]
    # Pieces before the last end where the next begins, not at the end of the file.
    state["ended"], state["lost_bytes"] = (ended, lost) if job.piece.last else (True, 0)


def _documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    try:
        yield from format_of(job.file.format).documents(job, counts, state)
    except DamagedStreamError as error:
        before = f"The last whole one before is {state['last']}." if "last" in state else "None of its part is whole."
        raise SourceError(f"{error} {before}") from error
