"""The parts of one source: the search of its dumps for plain-text templates, extraction of every piece, the totals."""

from __future__ import annotations

import functools
import itertools
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zstandard

from bertwright.core.files import write_atomic
from bertwright.core.log import Log
from bertwright.core.task_records import is_done, mark_done, read_done
from bertwright.core.tasks import Executor
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.errors import SourceError
from bertwright.corpus.extract import extract
from bertwright.corpus.sources.books import gather_books, has_books
from bertwright.corpus.sources.dump import Header, PageSplitter, parse_page
from bertwright.corpus.sources.file import ExtractJob, File, Piece
from bertwright.corpus.sources.known import format_of
from bertwright.corpus.sources.pieces import PLAIN_BYTES, between, read, spool
from bertwright.corpus.sources.source import Source
from bertwright.corpus.sources.wiki import BOUNDARY, lowest_level, page_bounds, read_header
from bertwright.corpus.wikitext.definitions import plain_definition
from bertwright.corpus.wikitext.site import TEMPLATE, Site
from bertwright.corpus.wikitext.templates import Table

MOST = 24 * 2**20
"""Most bytes of definitions that are kept; later ones are left out. Each worker holds all of them in memory."""
_MARK = b"<ns>%d</ns>" % TEMPLATE


@dataclass(frozen=True)
class Search:
    """A piece of a dump to search for definitions."""

    file: File
    piece: Piece
    site: Site
    copy: Path | None = None
    """Where to write the decoded bytes of the piece, if they are needed again and not stored yet."""


def gather_definitions(
    files: Sequence[File], language: str, number: int, folder: Path, executor: Executor, share: WorkSplit = SINGLE
) -> tuple[Path, list[tuple[File, Piece]]]:
    """Collect the definitions of source `number`; returns the path of their note in `folder`, and the pieces.

    The note maps template keys to bodies. `language` is used for dumps that name none. Of several pages with the same
    name the first counts. Every rank searches the entire source, unless another rank has already done so. Dumps older
    than 2012, which do not record the namespace of a page, define nothing.

    The returned pieces of this `share` have copies of their decoded bytes: decoding takes longer than everything else
    here, so its result is kept, lightly compressed, until the piece is extracted. The list is empty where the note
    already existed or disk space is short.

    Where disk space is short or there are several ranks, a file that can only be decoded from its beginning is a single
    task; every rank decodes it, and it is decoded again for its articles.
    """
    path = folder / f"{number:04d}.definitions.json"
    if is_done(path):
        return path, []
    cuts = [page_bounds(file) for file in files]
    # Decoding bz2 costs more than everything else in this pass, and extraction would have to decode it again.
    keep = _decoded_fits(files, folder) and (share.world == 1 or all(cuts))
    kept: list[tuple[File, Piece]] = []

    def searches() -> Iterator[Search]:
        for file, cut in zip(files, cuts, strict=True):
            header = read_header(file)
            site = header.site(language)
            for piece in _pieces(file, cut, number, len(kept), folder if keep else None):
                copied = keep and file.compression != "plain" and not piece.spool and share.owns(number + piece.index)
                copy = folder / f"{piece.name}.copy.zst" if copied else None
                kept.append((file, replace(piece, copy=copy)))
                yield Search(file, piece, site, copy)

    bodies: dict[str, str] = {}
    size = 0
    for definitions in executor.map(find_definitions, searches(), "corpus"):
        for key, body in definitions.items():
            size += len(f'  "{key}": "{body}",\n'.encode())
            if size <= MOST:
                bodies.setdefault(key, body)
    mark_done(path, facts=dict(sorted(bodies.items())))
    return path, kept if keep else []


def find_definitions(search: Search) -> dict[str, str]:
    """The plain-text definitions among the pages of a piece: body by template key."""
    bodies: dict[str, str] = {}
    splitting = PageSplitter(search.file.path, first=search.piece.start == 0)
    blocks = read(search.file, search.piece)
    for data in splitting.pages(_copy(blocks, search.copy) if search.copy else blocks):
        # Nearly all pages are not templates; a search in their bytes saves parsing them.
        if _MARK not in data:
            continue
        try:
            page = parse_page(data)
        except ValueError:
            continue  # the second pass reads this page too, and reports where it is and what is wrong with it
        if page.namespace == TEMPLATE and (definition := plain_definition(page.title, page.text, search.site)):
            bodies.setdefault(*definition)
    return bodies


def _copy(blocks: Iterator[bytes], copy: Path) -> Iterator[bytes]:
    """Yield the blocks unchanged, and write them compressed to `copy` once all have been consumed."""
    packing, packed = zstandard.ZstdCompressor(level=1).compressobj(), bytearray()
    for block in blocks:
        packed += packing.compress(block)
        yield block
    write_atomic(copy, bytes(packed + packing.flush()), sync=False)


def _decoded_fits(files: Sequence[File], folder: Path) -> bool:
    """Whether the disk has room for four times the size of the files that need decoding."""
    sizes = [file.size for file in files if file.compression != "plain" or file.encoding != "utf-8"]
    return shutil.disk_usage(folder).free > 4 * sum(sizes)


def _pieces(file: File, cuts: list[int], number: int, first: int, folder: Path | None) -> Iterable[Piece]:
    """The pieces of a file; a single piece if there are neither cuts nor a `folder` for decoded bytes."""
    if cuts:
        return between(cuts, number, first)
    if folder:
        return spool(file, BOUNDARY, number, first, folder)
    return [Piece(number, first, 0, file.size, file.size, last=True)]


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
            names = self._extract()
            mark_done(listed, facts=names)
        return [self.folder / name for name in names]

    def _all_done(self, notes: list[Path]) -> bool:
        """Whether all parts exist and are unchanged, which requires reading them."""
        # The cheap check first: reading all parts is wasted work where one is missing.
        return all(note.is_file() for note in notes) and all(self.executor.map(is_done, notes, "corpus"))

    def _extract(self) -> list[str]:
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
        books = self._books(pieces)

        def progress(step: tuple[int, int]) -> None:
            nonlocal done, documents
            done, documents = done + step[0], documents + step[1]
            size = self.source.size / self.share.world / 1e6
            self.log.progress("corpus", done / 1e6, size, "MB", documents=documents)

        everything = itertools.chain(pieces or self._pieces(), books)
        self.executor.map(extract, self._jobs(everything, names, definitions), "corpus", progress)
        return names

    def _books(self, pieces: list[tuple[File, Piece]]) -> list[tuple[File, Piece]]:
        """The pieces with the books of a Wikisource; `pieces` are those of its dump, if they are known already."""
        files, number = self.source.files, self.number
        if not (self.source.is_wiki and has_books(read_header(files[0]))):
            return []
        if not pieces:
            for file in files:
                pieces += ((file, piece) for piece in _pieces(file, page_bounds(file), number, len(pieces), None))
        lowest = lowest_level(self.config.wikitext)
        return gather_books(pieces, lowest, number, self.folder, self.executor, self.share)

    def _pieces(self) -> Iterator[tuple[File, Piece]]:
        """The pieces of all files in order."""
        first = 0
        for file, *more in _groups(self.source.files):
            if more:
                size = sum(each.size for each in (file, *more))
                yield file, Piece(self.number, first, 0, file.size, size, last=True, more=tuple(more))
                first += 1
                continue
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
                config, source = self.config, self.source.config
                header = header_of(file, source)
                yield ExtractJob(piece, file, header, config, source, self.folder, definitions, self.table)


def _groups(files: Sequence[File]) -> Iterator[list[File]]:
    """Yield the files in order, each alone, or together where they are too small for a piece each."""
    group, size = list[File](), 0
    for file in files:
        many = format_of(file.format).many_files
        if group and (not many or size + file.size > PLAIN_BYTES):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size
        if not many:
            yield group
            group, size = [], 0
    if group:
        yield group


def gather(config: CorpusConfig, source: Source, paths: list[Path], log: Log) -> Parts:
    """The totals of a source, once all its parts exist. Raises `SourceError` where it has no complete document."""
    header = _header(source.files[0], source.config)
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
    if counts["includes_scans"] and not counts["scanned_pages"]:
        log.say(
            f"corpus: {counts['includes_scans']:,} pages of {source.name} show text of scanned books, and it has no "
            "proofread page of one. Use the dump named pages-articles of the entire wiki; if no page is proofread "
            "there, set corpus.wikitext.unproofread_pages = true."
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


def _header(file: File, config: SourceConfig) -> Header:
    return format_of(file.format).header(file, config)


def _what_was_lost(source: Source, last: str, lost: int) -> str:
    rest = f"{lost:,} bytes of an incomplete one after it are not used" if lost else "everything after that is missing"
    name = source.files[0].path.name if len(source.files) == 1 else f"a file of {source.name}"
    return f"corpus: {name} ends after {last}, as after an interrupted download: {rest}."
