"""Reads the lines of text files and of finished corpora one after another, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import RecipeError
from bertwright.corpus.errors import MAX_DOCUMENT, bad_encoding, too_long
from bertwright.corpus.sources.detect import examine
from bertwright.corpus.sources.file import File, Reader
from bertwright.corpus.text import sentences

_LONG = 2**20
"""Bytes of a line from which it is cut at a space: no word goes on after one."""


@dataclass(frozen=True)
class LinesOf:
    """The texts of a file or of a corpus."""

    path: Path
    """As given."""
    source: File | Artifact

    @property
    def size(self) -> int:
        """Bytes: of the file as it lies on the disk, of a corpus those of its sentences."""
        return self.source.size if isinstance(self.source, File) else int(self.source.counts["text_bytes"])

    def __iter__(self) -> Iterator[str]:
        """Yield its lines without their ends, empty ones too; very long ones in parts."""
        return _lines(self.source) if isinstance(self.source, File) else sentences(self.source)


def open_lines(paths: Sequence[Path]) -> list[LinesOf]:
    """The texts in `paths`: files of plain text (UTF-8, also compressed), `corpus` folders, or runs that have one.

    Reads only the beginning of each. Raises `RecipeError` or `DataError` for anything else.
    """
    return [LinesOf(path, _source(path)) for path in paths]


def _source(path: Path) -> File | Artifact:
    if path.is_dir():
        folder = path if (path / MANIFEST).is_file() else path / "corpus"
        if not (folder / MANIFEST).is_file():
            raise RecipeError(
                f"{path} is a folder without a finished corpus. Give text files, a run with its corpus, or a corpus "
                "folder."
            )
        return open_artifact(folder, "corpus")
    file = examine(path)
    if file.format != "text":
        raise RecipeError(
            f"{path} is {file.format}, not plain text. Make a corpus of it (`bertwright corpus`) and give that folder."
        )
    return file


def _lines(file: File) -> Iterator[str]:
    rest, start = b"", 0
    for block in Reader(file):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield _decoded(file, line, start)
            start += len(line) + 1
        if len(rest) > _LONG and (cut := rest.rfind(b" ")) > 0:
            yield _decoded(file, rest[:cut], start)
            start, rest = start + cut, rest[cut:]
        if len(rest) > MAX_DOCUMENT:
            raise too_long(file.path, start)
    if rest:
        yield _decoded(file, rest, start)


def _decoded(file: File, line: bytes, start: int) -> str:
    try:
        return line.decode("utf-8-sig" if start == 0 else "utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise bad_encoding(file.path, start + error.start) from error
