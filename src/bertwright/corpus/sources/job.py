"""What a worker is given: a piece of a file, and all that is needed to make articles of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.sources.file import File
from bertwright.corpus.wikitext.templates import Table


@dataclass(frozen=True)
class Piece:
    """Some whole documents of a file."""

    source: int
    index: int
    """Its place among the pieces of all files of the source."""
    start: int
    """Where it begins: offset in the file for a range, in the decoded bytes for a spooled piece; in a table the number
    of the first row (Parquet) or record batch (Arrow)."""
    stop: int
    progress: int
    """Bytes of the file on disk that it stands for."""
    last: bool
    """Whether the file ends with it."""
    cut: bool = False
    """Whether its compressed data breaks off at its end."""
    spool: Path | None = None
    """The file of decoded bytes, where the file could only be decoded from its beginning."""

    copy: Path | None = None
    """Its decoded bytes, where the search for templates left them, so that they are not decoded twice."""

    @property
    def name(self) -> str:
        """The name of its part, unique within the stage and sorting in source order."""
        return f"{self.source:04d}-{self.index:06d}"


@dataclass(frozen=True)
class Job:
    """A piece and all that is needed to work on it."""

    piece: Piece
    file: File
    header: Header
    """What the file says of its wiki, if it is a dump."""
    config: CorpusConfig
    source: SourceConfig
    parts: Path
    definitions: Path | None = None
    """The file of templates that the dumps of the source define, where they are to be written out."""
    table: Table | None = None
    """The user's own templates."""

    @property
    def whole_lines(self) -> bool:
        """Whether a paragraph is one sentence already."""
        return self.source.lines == "sentences"

    @property
    def origin(self) -> dict[str, Any]:
        """Where its documents come from and under which licence, for their side-car lines."""
        return {
            "source": self.source.name or self.header.database or self.file.format,
            "licence": self.source.licence or self.header.licence,
        }
