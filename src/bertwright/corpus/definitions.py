"""The first pass over a source's dumps, which collects the templates defined as one line of plain text."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from bertwright.core.files import write_atomic
from bertwright.core.task_records import is_done, mark_done
from bertwright.core.tasks import Executor
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.sources.dump import PageSplitter, parse_page
from bertwright.corpus.sources.file import File, Piece
from bertwright.corpus.sources.pieces import between, read, spooled
from bertwright.corpus.sources.wiki import BOUNDARY, page_bounds, read_header
from bertwright.corpus.wikitext.definitions import plain_definition
from bertwright.corpus.wikitext.site import TEMPLATE, Site

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
    """The plain-text definitions among the pages of a piece: body by template key."""
    bodies: dict[str, str] = {}
    splitting = PageSplitter(search.file.path, first=search.piece.start == 0)
    blocks = read(search.file, search.piece)
    for data in splitting.pages(_copying(blocks, search.copy) if search.copy else blocks):
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


def _copying(blocks: Iterator[bytes], copy: Path) -> Iterator[bytes]:
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
        return spooled(file, BOUNDARY, number, first, folder)
    return [Piece(number, first, 0, file.size, file.size, last=True)]
