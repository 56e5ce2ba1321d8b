"""The first pass over a source's dumps: the templates that they define as one line of plain text."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from bertwright.core.done import is_done, mark_done
from bertwright.core.files import write_atomic
from bertwright.core.tasks import Executor
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.sources.dump import PageSplitter, parse_page
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.job import Piece
from bertwright.corpus.sources.pieces import between, read, spooled
from bertwright.corpus.sources.wiki import BOUNDARY, page_bounds, read_header
from bertwright.corpus.wikitext.definitions import plain_definition
from bertwright.corpus.wikitext.site import TEMPLATE, Site

MOST = 24 * 2**20
"""Bytes of definitions that are kept, at most, the first ones: each worker holds them all."""
_MARK = b"<ns>%d</ns>" % TEMPLATE


@dataclass(frozen=True)
class Search:
    """A piece of a dump in which definitions are looked for."""

    file: File
    piece: Piece
    site: Site
    copy: Path | None = None
    """Where the decoded bytes of the piece go, if they are wanted again and lie nowhere yet."""


def gather_definitions(
    files: Sequence[File], language: str, number: int, folder: Path, executor: Executor, share: WorkSplit = SINGLE
) -> tuple[Path, list[tuple[File, Piece]]]:
    """The note in `folder` with the definitions of the source of this number: body by template key.

    `language` is that of dumps that name none. Of several pages of the same name the first counts. Every rank looks
    through the whole source, unless another one has done so. Dumps older than 2012, which do not say the namespace of a
    page, define nothing.

    Also the pieces of the files, those of this `share` with their decoded bytes: decoding takes longer than all else
    here, so what was decoded is kept, weakly compressed, until the piece is extracted. None where disk is short.

    A file that can only be decoded from its beginning is one task where disk is short or there are several ranks, which
    all decode it, and is decoded again for its articles.
    """
    path = folder / f"{number:04d}.definitions.json"
    if is_done(path):
        return path, []
    cuts = [page_bounds(file) for file in files]
    # Decoding bz2 costs more than all else in this pass, and extraction would decode it again.
    keep = _decoded_fits(files, folder) and (share.world == 1 or all(cuts))
    kept: list[tuple[File, Piece]] = []

    def searches() -> Iterator[Search]:
        for file, cut in zip(files, cuts, strict=True):
            header = read_header(file)
            site = Site(header.language or language, header.namespaces)
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
    """The plain definitions among the pages of a piece."""
    bodies: dict[str, str] = {}
    splitting = PageSplitter(search.file.path, first=search.piece.start == 0)
    blocks = read(search.file, search.piece)
    for data in splitting.pages(_copying(blocks, search.copy) if search.copy else blocks):
        # Nearly all pages are no templates; a search in their bytes spares parsing them.
        if _MARK not in data:
            continue
        try:
            page = parse_page(data)
        except ValueError:
            continue  # the second pass comes to this page too, and says where it is and what is wrong with it
        if page.namespace == TEMPLATE and (definition := plain_definition(page.title, page.text, search.site)):
            bodies.setdefault(*definition)
    return bodies


def _copying(blocks: Iterator[bytes], copy: Path) -> Iterator[bytes]:
    """The blocks, which are written to `copy` when all were taken."""
    packing, packed = zstandard.ZstdCompressor(level=1).compressobj(), bytearray()
    for block in blocks:
        packed += packing.compress(block)
        yield block
    write_atomic(copy, bytes(packed + packing.flush()), sync=False)


def _decoded_fits(files: Sequence[File], folder: Path) -> bool:
    """Whether the disk has room for four times the size of what has to be decoded."""
    sizes = [file.size for file in files if file.compression != "plain" or file.encoding != "utf-8"]
    return shutil.disk_usage(folder).free > 4 * sum(sizes)


def _pieces(file: File, cuts: list[int], number: int, first: int, folder: Path | None) -> Iterable[Piece]:
    """The pieces of a file; without cuts and a `folder` for what is decoded, the whole of it."""
    if cuts:
        return between(cuts, number, first)
    if folder:
        return spooled(file, BOUNDARY, number, first, folder)
    return [Piece(number, first, 0, file.size, file.size, last=True)]
