"""An excerpt of a source: some of its documents, cleaned, split and judged as the corpus stage would, without files.

Repetitions are not looked for. The documents are the same at every call: pieces of a file that can be read from
several places are spread evenly over it, others are read from the beginning.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bertwright.core.work_split import SINGLE
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.extract import Judged, judged
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.source import Source

_PLACES = 16
"""Most pieces that are read."""
_T = TypeVar("_T")


class Excerpt(NamedTuple):
    """Some documents of a source."""

    documents: list[Judged]
    """With those that the filter drops."""
    whole: bool
    """Whether these are all documents of the source."""

    @property
    def kept(self) -> list[list[str]]:
        """The sentences of each document that the filter keeps."""
        return [document.sentences for document in self.documents if document.reason is None and document.sentences]


def read_excerpt(config: CorpusConfig, source: Source, most: int) -> Excerpt:
    """Read documents of about `most` bytes of text from a source, which is one of `config` or is read like them.

    Raises `SourceError` if what is read of it is damaged.
    """
    found: list[Judged] = []
    with tempfile.TemporaryDirectory() as folder:  # for formats that are decoded from their beginning
        chosen = _spread(source, Path(folder))
        pieces, share, whole = iter(chosen.pieces), most / chosen.several, chosen.every
        for file, piece in pieces:
            header = format_of(file.format).header(file, source.config)
            job = ExtractJob(piece, file, header, config, source.config, Path(folder))
            taken, ended = _first(job, share)
            found += taken
            whole = whole and ended
            if sum(map(_size, found)) >= most:
                whole = whole and next(pieces, None) is None
                break
    return Excerpt(found, whole)


def _first(job: ExtractJob, most: float) -> tuple[list[Judged], bool]:
    """The first documents of a piece with about `most` bytes, at least one, and whether they are all."""
    found, size, state = list[Judged](), 0, dict[str, Any]()
    for document in judged(job, Counter(), state):
        if found and size >= most:
            return found, False
        found.append(document)
        size += _size(document)
    return found, True


def _size(document: Judged) -> int:
    return sum(len(sentence.encode()) + 1 for sentence in document.sentences)


class _Chosen(NamedTuple):
    pieces: Iterable[tuple[File, Piece]]
    several: int
    """How many of them share the text that is wanted."""
    every: bool
    """Whether they cover the source."""


def _spread(source: Source, folder: Path) -> _Chosen:
    """Some pieces of the files of a source, evenly spread."""
    files = _evenly(source.files)
    pieces = ((file, piece) for file in files for piece in _pieces(file, source, folder))
    first = next(pieces)
    # Pieces that are decoded on the way are written to the folder one by one: those at the beginning are taken.
    if first[1].spool is not None:
        return _Chosen(chain([first], pieces), len(files), len(files) == len(source.files))
    known = [first, *pieces]
    chosen = _evenly(known)
    return _Chosen(chosen, len(chosen), len(chosen) == len(known) and len(files) == len(source.files))


def _evenly(items: Sequence[_T]) -> list[_T]:
    """At most `_PLACES` of the items, evenly spread."""
    taken = min(len(items), _PLACES)
    return [items[number * len(items) // taken] for number in range(taken)]


def _pieces(file: File, source: Source, folder: Path) -> Iterator[Piece]:
    return format_of(file.format).splits(file, source.config, 0, 0, folder, SINGLE)
