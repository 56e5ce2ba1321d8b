"""The parts of one source: extraction of every piece, and the totals."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.log import Log
from bertwright.core.task_records import is_done, mark_done, read_done
from bertwright.core.tasks import Executor
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.definitions import gather_definitions
from bertwright.corpus.errors import SourceError
from bertwright.corpus.extract import extract
from bertwright.corpus.sources.dump import Header
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.source import Source
from bertwright.corpus.sources.wiki import read_header
from bertwright.corpus.wikitext.templates import Table


@dataclass(frozen=True)
class Parts:
    """The result of extracting one source."""

    paths: list[Path]
    """Its parts in source order, without suffix."""
    counts: Counter[str]
    facts: dict[str, Any]
    """The source's entry in the manifest."""


@dataclass(frozen=True)
class Extraction:
    """One source to extract, with everything needed to do so."""

    config: CorpusConfig
    source: Source
    number: int
    """Index of the source among all sources."""
    table: Table | None
    folder: Path
    log: Log
    executor: Executor
    share: WorkSplit

    def parts(self) -> list[Path]:
        """Extract this rank's pieces of the source into `folder`, reusing parts that are already there.

        Returns the parts of all ranks, without suffix, in source order.
        """
        listed = self.folder / f"{self.number:04d}.parts.json"
        names: list[str] = read_done(listed) if is_done(listed) else []
        own_parts = [self.folder / f"{name}.json" for i, name in enumerate(names) if self.share.owns(self.number + i)]
        if not names or not self._all_done(own_parts):
            self.log.say(f"corpus: reading {self.source}")
            names = self._extracted()
            mark_done(listed, facts=names)
        return [self.folder / name for name in names]

    def _all_done(self, notes: list[Path]) -> bool:
        """Whether all parts exist and are unchanged, which requires reading them."""
        # The cheap check first: reading all parts is wasted work where one is missing.
        return all(note.is_file() for note in notes) and all(self.executor.map(is_done, notes, "corpus"))

    def _extracted(self) -> list[str]:
        """Run the task list; returns the names of all parts in order."""
        names: list[str] = []
        done = documents = 0
        definitions: Path | None = None
        pieces: list[tuple[File, Piece]] = []
        if self.config.wikitext.expand_templates and self.source.is_wiki:
            language, files = self.config.language, self.source.files
            definitions, pieces = gather_definitions(
                files, language, self.number, self.folder, self.executor, self.share
            )

        def progress(step: tuple[int, int]) -> None:
            nonlocal done, documents
            done, documents = done + step[0], documents + step[1]
            size = self.source.size / self.share.world / 1e6
            self.log.progress("corpus", done / 1e6, size, "MB", documents=documents)

        self.executor.map(extract, self._jobs(pieces or self._pieces(), names, definitions), "corpus", progress)
        return names

    def _pieces(self) -> Iterator[tuple[File, Piece]]:
        """The pieces of all files in order."""
        first = 0
        for file in self.source.files:
            splits = format_of(file.format).splits
            for piece in splits(file, self.source.config, self.number, first, self.folder, self.share):
                yield file, piece
                first = piece.index + 1

    def _jobs(
        self, pieces: Iterable[tuple[File, Piece]], names: list[str], definitions: Path | None
    ) -> Iterator[ExtractJob]:
        """This rank's jobs among the pieces; appends the names of the parts of all ranks to `names`."""
        # Cached: all pieces of a file share its header, and reading it decodes the beginning of the file.
        header_of = functools.cache(_header)
        for file, piece in pieces:
            names.append(piece.name)
            if self.share.owns(self.number + piece.index):
                header, config, source = header_of(file), self.config, self.source.config
                yield ExtractJob(piece, file, header, config, source, self.folder, definitions, self.table)


def gather(config: CorpusConfig, source: Source, paths: list[Path], log: Log) -> Parts:
    """The totals of a source, once all its parts exist. Raises `SourceError` where it has no complete document."""
    header = _header(source.files[0])
    counts: Counter[str] = Counter()
    last, cut = "", None
    for path in paths:
        state = read_done(path.with_suffix(".json"))
        counts.update(state["counts"])
        last = state.get("last", last)
        if not state["ended"]:
            log.say(_what_was_lost(source, last, state["lost_bytes"]))
            # Where several files are truncated, report the first place and the sum of the lost bytes.
            cut = cut or {"after": last, "lost_bytes": 0}
            cut["lost_bytes"] += state["lost_bytes"]
    if replaced := counts["replaced_characters"]:
        log.say(
            f"corpus: {source.name} has {replaced:,} bytes or characters that are not valid in text; each was "
            "replaced by U+FFFD"
        )
    if not last:
        kind = "page" if source.is_wiki else "document"
        raise SourceError(f"{source.files[0].path} contains no complete {kind}. Download it again.")
    return Parts(paths, counts, {
        "name": source.config.name or header.database or source.name,
        "format": source.files[0].format,
        "files": len(source.files),
        "database": header.database,
        "base": header.base,
        "licence": source.config.licence or header.licence,
        "weight": source.config.weight,
        "file_bytes": source.size,
        "sha256": source.sha256,  # about 1 GB/s: little compared with the extraction
        "cut": cut,
    })  # fmt: skip


def _header(file: File) -> Header:
    return read_header(file) if format_of(file.format).is_wiki else Header()


def _what_was_lost(source: Source, last: str, lost: int) -> str:
    rest = f"{lost:,} bytes of an incomplete one after it are not used" if lost else "everything after that is missing"
    name = source.files[0].path.name if len(source.files) == 1 else f"a file of {source.name}"
    return f"corpus: {name} ends after {last}, as after an interrupted download: {rest}."
