"""The first pass over a source's dumps: the templates that they define as one line of plain text."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from bertwright.core.done import is_done, mark_done
from bertwright.core.files import write_atomic
from bertwright.core.ranks import WHOLE, Share
from bertwright.core.tasks import Executor
from bertwright.corpus.sources.dump import PageSplitter, parse_page
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.job import Piece
from bertwright.corpus.sources.pieces import bounds, read
from bertwright.corpus.sources.wiki import BOUNDARY, read_header
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
    copy: Path | None
    """Where the decoded bytes of the piece go, if they are wanted again."""


def gather_definitions(
    files: Sequence[File], language: str, number: int, folder: Path, executor: Executor, share: Share = WHOLE
) -> tuple[Path, bool]:
    """The note in `folder` with the definitions of the source of this number: body by template key.

    `language` is that of dumps that name none. Of several pages of the same name the first counts. Every rank looks
    through the whole source, unless another one has done so. A file that can only be decoded from its beginning is one
    task. Dumps older than 2012, which do not say the namespace of a page, define nothing.

    Also whether the pieces of this `share` now have copies, named by `copy_of`: decoding bz2 takes longer than all else
    here, so what was decoded is kept, weakly compressed, until the piece is extracted. Not where disk is short.
    """
    path = folder / f"{number:04d}.definitions.json"
    if is_done(path):
        return path, False
    copied = _copies_fit(files, folder)
    searches = list(_searches(files, language, number, folder if copied else None, share))
    bodies: dict[str, str] = {}
    size = 0
    for found in executor.map(find_definitions, searches, "corpus"):
        for key, body in found.items():
            size += len(f'  "{key}": "{body}",\n'.encode())
            if size <= MOST:
                bodies.setdefault(key, body)
    mark_done(path, facts=dict(sorted(bodies.items())))
    return path, copied


def copy_of(piece: Piece, folder: Path) -> Path:
    """Where the copy of a piece is."""
    return folder / f"{piece.name}.copy.zst"


def find_definitions(search: Search) -> dict[str, str]:
    """The plain definitions among the pages of a piece."""
    bodies: dict[str, str] = {}
    splitting = PageSplitter(search.file.path, first=search.piece.start == 0)
    blocks = read(search.file, search.piece)
    for data in splitting.pages(_copying(blocks, search.copy) if search.copy else blocks):
        if _MARK not in data:
            continue
        try:
            page = parse_page(data)
        except ValueError:
            continue  # the second pass comes to this page too, and says where it is and what is wrong with it
        if page.namespace == TEMPLATE and (found := plain_definition(page.title, page.text, search.site)):
            bodies.setdefault(*found)
    return bodies


def _copying(blocks: Iterator[bytes], copy: Path) -> Iterator[bytes]:
    """The blocks, which are written to `copy` when all were taken."""
    packing, packed = zstandard.ZstdCompressor(level=1).compressobj(), bytearray()
    for block in blocks:
        packed += packing.compress(block)
        yield block
    write_atomic(copy, bytes(packed + packing.flush()), sync=False)


def _copies_fit(files: Sequence[File], folder: Path) -> bool:
    """Whether the source is bz2 that can be cut, and the disk has room for four times its size."""
    if any(file.compression != "bz2" or not bounds(file, BOUNDARY) for file in files):
        return False
    return shutil.disk_usage(folder).free > 4 * sum(file.size for file in files)


def _searches(files: Sequence[File], language: str, number: int, copies: Path | None, share: Share) -> Iterator[Search]:
    index = 0
    for file in files:
        header = read_header(file)
        site = Site(header.language or language, header.namespaces)
        cuts = bounds(file, BOUNDARY) or [0, file.size]
        for start, stop in itertools.pairwise(cuts):
            piece = Piece(number, index, start, stop, stop - start, last=stop == cuts[-1])
            mine = copies is not None and share.owns(number + index)
            yield Search(file, piece, site, copy_of(piece, copies) if copies and mine else None)
            index += 1
