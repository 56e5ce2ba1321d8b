"""The interface of a source format: how its files are detected, split and read, and which keys apply to it.

Every format yields articles of plain paragraphs, which are not yet split into sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.sources.file import ExtractJob, File, Piece


# Not a dataclass: there is one for every line of a dump, and a frozen one takes three times as long to make.
class Paragraph(NamedTuple):
    """A paragraph or list item of an article."""

    text: str
    """Plain text: one line, NFC, no markup, never empty."""

    heading: str | None = None
    """The title of the section that this paragraph opens; None where it continues a section."""


@dataclass(frozen=True)
class Article:
    """A page of a wiki, or a document of another source."""

    facts: Mapping[str, Any]
    """The content of its side-car line: id, title, revision, url, source, licence."""
    paragraphs: list[Paragraph]
    wikitext: str = ""
    """The page as its authors wrote it, if it is one of a wiki."""
    removed: tuple[tuple[str, str], ...] = ()
    """Paragraphs that rules have removed: the name under which each is counted, and its text."""
    replaced: int = 0
    """How many U+FFFD replace what was no character in its record, such as half of a surrogate pair."""


class PassedOverError(Exception):
    """A record of a wiki is no article; it is counted under the name of its kind and left out."""

    def __init__(self, kind: Literal["redirects", "other_namespaces", "disambiguations"]) -> None:
        super().__init__(kind)
        self.kind = kind


Key = Literal["lines", "text"]
"""Keys of a source that apply only to some formats."""


class Splits(Protocol):
    """Splits a file into pieces."""

    def __call__(
        self, file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
    ) -> Iterator[Piece]:
        """Yield the pieces of a file, numbered from `first`, in source `number`; together they cover the entire file.

        Pieces of this `share` may be spooled to `folder`. The cuts depend only on the file and its config.
        """


class Documents(Protocol):
    """Reads a piece."""

    def __call__(self, job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
        """Yield the documents of the piece in order, independently of how the file is split.

        What was read is added to `counts`. Afterwards `state` has the name of the last document (`last`), whether the
        file ends properly (`ended`), and how many bytes of a truncated document are left out (`lost_bytes`).
        """


def no_header(file: File, config: SourceConfig) -> Header:
    """Return an empty header: the default for formats that say nothing of a wiki."""
    return Header()


def no_folder(folder: Path) -> list[Path] | None:
    """Return None: the default for formats without a special layout of folders."""
    return None


@dataclass(frozen=True)
class SourceFormat:
    """One format of sources.

    Files are not trusted: damaged and malicious ones raise `SourceError`. Documents are streamed; a piece is read
    without the pieces before it.
    """

    kind: str
    matches: Callable[[bytes], bool]
    """Whether a file that begins with these bytes is of the format: 4 KiB of UTF-8 (less for a shorter file), or the
    first 16 bytes of a format that is not text."""
    splits: Splits
    documents: Documents
    is_text: bool = True
    """Whether its files are text, which may be compressed or UTF-16; other files are read directly from disk."""
    certain: bool = True
    """Whether its first bytes identify it with certainty. If not, fragments of dumps and files that belong to them are
    rejected before it is tried, and a recipe that names it is trusted."""
    also: tuple[str, ...] = ()
    """Formats that the same program also writes: their files are accepted where a recipe names this one."""
    keys: frozenset[Key] = frozenset()
    """Keys of a source that apply to it; others are rejected."""
    is_wiki: bool = False
    """Whether its files are MediaWiki exports, with a header, pages and templates, to which `corpus.wikitext` and
    `corpus.keep_disambiguation` apply."""
    many_files: bool = False
    """Whether its files are so many and so small that several are read as one piece."""
    header: Callable[[File, SourceConfig], Header] = no_header
    """What a file says of the wiki that its texts are from."""
    bytes_per_text: float = 1.0
    """Approximate bytes of a file, decompressed, per byte of its text; below 1 where the format itself compresses."""
    columns: Callable[[Path], list[str]] | None = None
    """Returns the names of a file's columns, if the format is tabular."""
    data_files: Callable[[Path], list[Path] | None] = no_folder
    """Returns the files of a folder saved by the format's own program, in order; None if it is not such a folder."""
