"""The first pass over a source's dumps: the templates that they define as one line of plain text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.done import is_done, mark_done
from bertwright.core.tasks import Executor
from bertwright.corpus.sources.dump import PageSplitter, parse_page
from bertwright.corpus.sources.file import File
from bertwright.corpus.sources.job import Piece
from bertwright.corpus.sources.pieces import bounds, read
from bertwright.corpus.sources.wiki import BOUNDARY, read_header
from bertwright.corpus.wikitext.definitions import plain_definition
from bertwright.corpus.wikitext.site import TEMPLATE, Site

_MARK = b"<ns>%d</ns>" % TEMPLATE


@dataclass(frozen=True)
class Search:
    """A piece of a dump in which definitions are looked for."""

    file: File
    piece: Piece
    site: Site


def gather_definitions(files: Sequence[File], language: str, number: int, folder: Path, executor: Executor) -> Path:
    """The file in `folder` with the definitions of the source of this number: a JSON object, body by template key.

    `language` is that of dumps that name none. Of several pages of the same name the first counts. Every rank looks
    through the whole source, unless another one has done so. A file that can only be decoded from its beginning is one
    task. Dumps older than 2012, which do not say the namespace of a page, define nothing.
    """
    path = folder / f"{number:04d}.definitions.json"
    if not is_done(path):
        bodies: dict[str, str] = {}
        for found in executor.map(find_definitions, _searches(files, language, number), "corpus"):
            for key, body in found.items():
                bodies.setdefault(key, body)
        mark_done(path, facts=dict(sorted(bodies.items())))
    return path


def find_definitions(search: Search) -> dict[str, str]:
    """The plain definitions among the pages of a piece."""
    bodies: dict[str, str] = {}
    splitting = PageSplitter(search.file.path, first=search.piece.start == 0)
    for data in splitting.pages(read(search.file, search.piece)):
        if _MARK not in data:
            continue
        try:
            page = parse_page(data)
        except ValueError:
            continue  # the second pass comes to this page too, and says where it is and what is wrong with it
        if page.namespace == TEMPLATE and (found := plain_definition(page.title, page.text, search.site)):
            bodies.setdefault(*found)
    return bodies


def _searches(files: Sequence[File], language: str, number: int) -> Iterator[Search]:
    for file in files:
        header = read_header(file)
        site = Site(header.language or language, header.namespaces)
        cuts = bounds(file, BOUNDARY) or [0, file.size]
        for i, (start, stop) in enumerate(itertools.pairwise(cuts)):
            yield Search(file, Piece(number, i, start, stop, stop - start, last=stop == cuts[-1]), site)
