"""The formats: how each is cut into pieces, and what articles are in a piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.article import Article
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.sources import datasets, jsonl, parquet, text, wiki, wikiextractor
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.job import Job, Piece
from bertwright.corpus.sources.pieces import text_pieces

_MODULES = {
    "dump": wiki,
    "text": text,
    "jsonl": jsonl,
    "wikiextractor": wikiextractor,
    "parquet": parquet,
    "datasets": datasets,
}


def pieces(
    file: File, config: SourceConfig, source: int, first: int, folder: Path, share: WorkSplit = SINGLE
) -> Iterator[Piece]:
    """The pieces of a file, numbered from `first` in the source of this number; some are spooled to `folder`."""
    match file.format:
        case "parquet":
            return parquet.pieces(file, source, first)
        case "datasets":
            return datasets.pieces(file, source, first)
        case "text":
            return text_pieces(file, text.BOUNDARIES[config.lines], source, first, folder, share)
        case "jsonl":
            return text_pieces(file, jsonl.BOUNDARY, source, first, folder, share)
        case "wikiextractor":
            return text_pieces(file, wikiextractor.BOUNDARY, source, first, folder, share)
        case "dump":
            return text_pieces(file, wiki.BOUNDARY, source, first, folder, share)


def articles(job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
    """The articles of the piece in order; what was read is added to `counts`.

    Afterwards `state` has the last of them (`last`), and whether the file ends as it should (`ended`), with the bytes
    of a document that was cut off (`lost_bytes`).
    """
    yield from _MODULES[job.file.format].articles(job, counts, state)
    if not job.piece.last:
        state["ended"], state["lost_bytes"] = True, 0
