"""The import of one file of external examples, and where its part is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertwright.core.artifact import Artifact
from bertwright.examples.config import ImportedData
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.format import Kind
from bertwright.formats.imported.heldout import HoldOut


@dataclass(frozen=True)
class ImportTask:
    """What a worker needs to import one file."""

    data: ImportedData
    file: Path
    kind: Kind
    static: bool
    """Whether the set has masks."""
    number: int
    """Number of the file in its set."""
    parts: Path
    vocab: Artifact
    vocabulary: Vocabulary
    hold_out: HoldOut | None = None
    """What it holds out; None when a corpus provides the held-out text."""

    @property
    def trains(self) -> bool:
        """Whether at least part of the file is used for training."""
        return self.hold_out is None or self.hold_out.share < 1

    @property
    def facts(self) -> Path:
        """The note that is written last: `{"file", "examples", ..., "sha256"}`, or `{"file", "fault"}`."""
        return self.part("json")

    def part(self, column: str) -> Path:
        """The file of one column."""
        return self.parts / self.data.folder / f"{self.number:05}.{column}"
