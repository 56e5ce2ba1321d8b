"""The input of a worker: a piece of a file, and everything needed to extract its articles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.header import Header
from bertwright.corpus.wikitext.templates import Table


@dataclass(frozen=True)
class Piece:
    """A range of complete documents of a file."""

    source: int
    index: int
    """Index of the piece among the pieces of all files of the source."""
    start: int
    """Where it begins: the offset in the file, or in the decoded bytes for a spooled piece; in a table the number of
    the first row (Parquet) or record batch (Arrow)."""
    stop: int
    progress: int
    """Bytes of the file on disk that it covers."""
    last: bool
    """Whether it is the last piece of the file."""
    cut: bool = False
    """Whether the compressed data are truncated at its end."""
    spool: Path | None = None
    """The file of decoded bytes, where the file could only be decoded from its beginning."""

    copy: Path | None = None
    """The file of decoded bytes that the search for templates saved, so that they are not decoded twice."""

    @property
    def name(self) -> str:
        """The name of its part, which is unique within the stage and sorts in source order."""
        return f"{self.source:04d}-{self.index:06d}"


@dataclass(frozen=True)
class Job:
    """A piece and everything needed to process it."""

    piece: Piece
    file: File
    header: Header
    """The header of the file, if it is a dump."""
    config: CorpusConfig
    source: SourceConfig
    parts: Path
    definitions: Path | None = None
    """The file of templates that the dumps of the source define, if they are to be expanded."""
    table: Table | None = None
    """The user's own templates."""

    @property
    def whole_lines(self) -> bool:
        """Whether each paragraph already is one sentence."""
        return self.source.lines == "sentences"

    @property
    def origin(self) -> dict[str, Any]:
        """The source and licence of its documents, for their side-car lines."""
        return {
            "source": self.source.name or self.header.database or self.file.format,
            "licence": self.source.licence or self.header.licence,
        }
