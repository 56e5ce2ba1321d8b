"""What a format of sources is: how a file of it is detected, cut into pieces and read, and which keys it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.article import Article
from bertwright.corpus.config import SourceConfig, SourceKind
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.job import Job, Piece

Key = Literal["lines", "text"]
"""Keys of a source that have a meaning for some formats alone."""


class Splits(Protocol):
    """Cuts a file."""

    def __call__(
        self, file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
    ) -> Iterator[Piece]:
        """The pieces of a file, numbered from `first` in the source of this number; together they are the file.

        Some are spooled to `folder`, those of this `share` alone. Cuts are a function of the file and its config.
        """


class Documents(Protocol):
    """Reads a piece."""

    def __call__(self, job: Job, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
        """The documents of the piece in order, the same however the file is cut.

        What was read is added to `counts`. Afterwards `state` names the last document (`last`), says whether the file
        ends as it should (`ended`), and how many bytes of a document that was cut off are left out (`lost_bytes`).
        """


def no_folder(folder: Path) -> list[Path] | None:
    """None, where no program saves folders of the format in a way of its own."""
    return None


@dataclass(frozen=True)
class SourceFormat:
    """One format of sources.

    Files are trusted with nothing: damaged and hostile ones raise `SourceError`. Documents are streamed; a piece is
    read without those before it.
    """

    kind: SourceKind
    matches: Callable[[bytes], bool]
    """Whether a file that begins with these bytes is of the format: 4 KiB of UTF-8 (fewer in a shorter file), or the
    first 16 bytes of what is no text."""
    splits: Splits
    documents: Documents
    is_text: bool = True
    """Whether its files are text, which may be compressed and UTF-16; others are read as they are on disk."""
    certain: bool = True
    """Whether its first bytes tell it for certain. If not, pieces and neighbours of dumps are refused before it is
    tried, and a recipe that names it is believed."""
    also: tuple[SourceKind, ...] = ()
    """Formats that the same program writes, too: files of them are taken where a recipe names this one."""
    keys: frozenset[Key] = frozenset()
    """Keys of a source that have a meaning for it; others are refused."""
    is_wiki: bool = False
    """Whether its files are exports of MediaWiki, with a header, pages and templates, for which there are
    `corpus.wikitext` and `corpus.keep_disambiguation`."""
    bytes_per_text: float = 1.0
    """Bytes of a file, unpacked, for each byte of its text, about; below 1 where the format packs texts itself."""
    columns: Callable[[Path], list[str]] | None = None
    """The names of a file's columns, where the format is one of tables."""
    data_files: Callable[[Path], list[Path] | None] = no_folder
    """The files of a folder that its program saved, in order; None where it saved none there."""
