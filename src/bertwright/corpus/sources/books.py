"""The books of a Wikisource, each assembled from the pages of its scan.

A Wikisource keeps the text of most books in a namespace of its own, one page for each page of the scan (a page
"Page:Emma.djvu/12" of the model "proofread-page"); the chapters among the articles only include them
(`<pages index="Emma.djvu" from=12 to=20 />`). A dump has these pages in the order in which they were created, so they
are collected before the articles are read: every piece of the dump is searched for them (`find_pages`), and the pages
of each book are put in order and joined as the wiki joins them (`assemble`). The books are further pieces of the dump.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from bertwright.core.files import write_atomic
from bertwright.core.task_records import is_done
from bertwright.core.tasks import Executor
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.sources.compression import zstandard
from bertwright.corpus.sources.dump import Header, Page, PageSplitter, parse_page
from bertwright.corpus.sources.file import File, Piece
from bertwright.corpus.sources.pieces import read

MODEL = "proofread-page"
PROOFREAD = 2
"""The lowest level at which a person has read the page: 0 has no text, 1 is that of a program that reads scans, 2 lacks
something such as a figure, 3 and 4 were read once and twice."""
_MARKS = (b"<model>proofread-page</model>", b"&lt;pagequality ")
_LEVEL = re.compile(r"<pagequality\s+level=\"?(\d)")
_HEAD = 400
_PAGES = 250
"""The number of their namespace in wikis of today; the older Wikisources have others."""
# Of a book of several files ("Emma 012.jpg"), the number in the name of the file; an inserted page is "Emma 012 b.jpg".
_NUMBER = re.compile(r"(.*?)(\d+)(?:[ _]?[a-z](?=\.|\Z))?(\D*)\Z", re.DOTALL)
_SUFFIX = re.compile(r"\.(?:djvu?|pdf|tiff?|jpe?g|png|webp|gif)\b", re.I)
_NOT_INCLUDED = re.compile(r"<noinclude\b[^<>]*+>.*?(?:</noinclude\s*+>|\Z)|</?includeonly\s*+/?>", re.DOTALL | re.I)
_ONLY = re.compile(r"<onlyinclude\s*+>(.*?)(?:</onlyinclude\s*+>|\Z)", re.DOTALL | re.I)
_SECTIONS = r"(?:\s|<section\b[^<>]*+>)*+"
"""What prints nothing at the beginning and the end of a page: the marks of labelled sections."""
_HYPHEN = re.compile(rf"(?<=\w)[-‐\u00ad](?={_SECTIONS}\Z)")
_BEGINNING = re.compile(_SECTIONS)
# The two parts of a word that a page divides, in the calls before and after the end of the page.
_CALL = r"\{\{([^{}|]++)\|([^{}|]*+)\|([^{}|]*+)\}\}"
_FIRST_PART = re.compile(rf"{_CALL}(?={_SECTIONS}\Z)")
_SECOND_PART = re.compile(rf"({_SECTIONS}){_CALL}")
_KEPT_HYPHEN = re.compile(rf"\{{\{{(?:peh|page end hyphen)\}}\}}(?={_SECTIONS}\Z)", re.I)
_BUCKET = 2**25
"""Approximate bytes of a dump on disk for each piece of its books."""
_MOST_BUCKETS = 256
_LONGEST_END = 1000
"""How many characters at the end of a page are searched for a divided word."""
_FIRST_BOOK = 500_000
"""The index of the first piece of books, after those of all files of a source."""
_LONGEST = 2**22
"""Characters of a document, at most: longer books are several, each of whole pages."""


def has_books(header: Header) -> bool:
    """Whether the wiki may have pages of scans."""
    return header.project == "wikisource" or _PAGES in header.namespaces


def level(page: Page) -> int | None:
    """How far a page of a scan is proofread, 0 to 4; None if it is none."""
    marked = _LEVEL.search(page.text, 0, _HEAD)
    if page.model != MODEL and (marked is None or page.namespace == 0):
        return None
    return int(marked[1]) if marked else 1


def title(page: str) -> str:
    """The title of the book that the page with this title belongs to: "Emma" for "Page:Emma.djvu/12"."""
    book, _ = _place(page)
    return " ".join(_SUFFIX.sub("", book).strip("/ _").replace("_", " ").split())


def bucket_count(files: Sequence[File]) -> int:
    """The number of pieces of the books of these files."""
    return min(_MOST_BUCKETS, 1 + sum(file.size for file in files) // _BUCKET)


class Found(NamedTuple):
    """Pages that one task found."""

    path: Path
    spans: dict[int, tuple[int, int]]
    """The place of each bucket's pages in the file: offset and length in bytes."""


@dataclass(frozen=True)
class PageSearch:
    """A piece of a dump to search for pages of scans."""

    file: File
    piece: Piece
    lowest: int
    """The lowest level of pages that are read."""
    buckets: int
    path: Path
    """The file to write."""


def find_pages(search: PageSearch) -> Found:
    """Write the pages of scans in a piece, those of each bucket as one zstd frame of JSON lines."""
    buckets: dict[int, list[str]] = {}
    splitting = PageSplitter(search.file.path, first=search.piece.start == 0)
    for data in splitting.pages(read(search.file, search.piece)):
        if not any(mark in data for mark in _MARKS):
            continue
        try:
            page = parse_page(data)
        except ValueError:
            continue  # extraction reads this page too, and reports where it is and what is wrong with it
        quality = level(page)
        if quality is None or quality < search.lowest:
            continue
        book, number = _place(page.title)
        line = [book, number, page.title, page.id, page.revision, _included(page.text)]
        bucket = zlib.crc32(book.encode()) % search.buckets
        buckets.setdefault(bucket, []).append(json.dumps(line, ensure_ascii=False))
    written, spans = bytearray(), dict[int, tuple[int, int]]()
    compressor = zstandard().ZstdCompressor(level=1)
    for bucket, lines in sorted(buckets.items()):
        frame = compressor.compress("\n".join(lines).encode())
        spans[bucket] = (len(written), len(frame))
        written += frame
    write_atomic(search.path, bytes(written), sync=False)
    return Found(search.path, spans)


@dataclass(frozen=True)
class Assembly:
    """One bucket of books to assemble."""

    frames: tuple[tuple[Path, int, int], ...]
    """The file, offset and length of each frame of its pages, in the order of the dump."""
    path: Path
    """The file to write."""


def assemble(assembly: Assembly) -> None:
    """Write the books of a bucket as pages of an export, in the order of their names."""
    books: dict[str, list[_Page]] = {}
    for path, offset, length in assembly.frames:
        with path.open("rb") as handle:
            handle.seek(offset)
            text = zstandard().ZstdDecompressor().decompressobj().decompress(handle.read(length)).decode()
        for line in text.split("\n"):
            book, *facts = json.loads(line)
            books.setdefault(book, []).append(_Page(*facts))
    written = "".join(_element(first, text) for book in sorted(books) for first, text in _documents(books[book]))
    write_atomic(assembly.path, zstandard().ZstdCompressor(level=1).compress(written.encode()), sync=False)


def gather_books(
    pieces: Sequence[tuple[File, Piece]],
    lowest: int,
    number: int,
    folder: Path,
    executor: Executor,
    share: WorkSplit = SINGLE,
) -> list[tuple[File, Piece]]:
    """Assemble the books of source `number` from the pages of scans of at least the level `lowest` in `pieces`.

    Returns the pieces of the books of all ranks; those of this `share` are spooled to `folder`. Every rank searches the
    entire source.
    """
    files = list(dict.fromkeys(file for file, _ in pieces))
    buckets = bucket_count(files)
    searches = (
        PageSearch(file, piece, lowest, buckets, folder / f"{piece.name}.pages-{share.rank}.zst")
        for file, piece in pieces
    )
    found = executor.map(find_pages, searches, "corpus")
    books: list[tuple[File, Piece]] = []
    assemblies = []
    for bucket in range(buckets):
        frames = tuple((one.path, *one.spans[bucket]) for one in found if bucket in one.spans)
        if not frames:
            continue
        piece = Piece(number, _FIRST_BOOK + bucket, 0, 0, 0, last=False, books=True)
        spool = folder / f"{piece.name}.piece.zst"
        books.append((files[0], replace(piece, spool=spool)))
        if share.owns(number + piece.index) and not is_done(folder / f"{piece.name}.json"):
            assemblies.append(Assembly(frames, spool))
    executor.map(assemble, assemblies, "corpus")
    for one in found:
        one.path.unlink()
    return books


class _Page(NamedTuple):
    number: int
    title: str
    id: int
    revision: int
    text: str


def _element(first: _Page, text: str) -> str:
    """A page of an export that has the text of a document."""
    title, text = (each.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for each in (first.title, text))
    return (
        f"<page><title>{title}</title><ns>0</ns><id>{first.id}</id><revision><id>{first.revision}</id>"
        f"<model>wikitext</model><text>{text}</text></revision></page>\n"
    )


def _documents(pages: Iterable[_Page]) -> Iterator[tuple[_Page, str]]:
    """Yield the first page and the text of each document of a book."""
    chosen: list[_Page] = []
    size = 0
    for page in sorted(pages):
        if chosen and size + len(page.text) > _LONGEST:
            yield chosen[0], join(page.text for page in chosen)
            chosen, size = [], 0
        chosen.append(page)
        size += len(page.text)
    if chosen:
        yield chosen[0], join(page.text for page in chosen)


def join(texts: Iterable[str]) -> str:
    """The pages as one text: a paragraph goes on over the end of a page unless a blank line or {{nop}} ends it, and so
    does a word that the page ends with a hyphen, or that templates on both pages name."""
    joined: list[str] = []
    for text in texts:
        text = text.rstrip()
        if not text:
            continue
        if joined:
            joined[-1], text = _joined(joined[-1], text)
        joined.append(text)
    return "".join(joined)


def _joined(before: str, after: str) -> tuple[str, str]:
    """Two pages as they follow each other."""
    end = before[-_LONGEST_END:]
    if (first := _FIRST_PART.search(end)) and (second := _SECOND_PART.match(after)):
        word = _divided_word(first.groups(), second.groups()[1:])
        if word:
            start = len(before) - len(end)
            rest = f"{end[first.end() :]}{second[1]}"
            return f"{before[: start + first.start()]}{word}", f"{rest}{after[second.end() :]}"
    if kept := _KEPT_HYPHEN.search(end):
        return before[: len(before) - len(end) + kept.start()] + "-", after
    hyphen = _HYPHEN.search(end)
    goes_on = _BEGINNING.match(after)
    # A blank line at the beginning of a page begins a paragraph; it is the first line that the wiki includes.
    if hyphen and goes_on and "\n" not in goes_on[0] and after[goes_on.end() :][:1].islower():
        return before[: len(before) - len(end) + hyphen.start()] + end[hyphen.end() :], after
    return before, f"\n{after}"


def _divided_word(first: Sequence[str], second: Sequence[str]) -> str:
    """The word of which two calls, each a name and two arguments, print the parts; "" if they do not.

    On every Wikisource it is a pair of templates of one of two forms: both calls have both parts, as {{tiret|beau|té}}
    and {{tiret2|beau|té}} (fr), or each its own part and the entire word, as {{hws|beau|beauty}} and
    {{hwe|ty|beauty}} (en) or {{Pt|fini-|}} and {{Pt|to|finito}} (it).
    """
    (name, start, whole), (other, end, also_whole) = (map(str.strip, each) for each in (first, second))
    if (start, whole) == (end, also_whole) and name != other:
        return start + whole
    return also_whole if start and start.rstrip("-‐") + end == also_whole and whole in ("", also_whole) else ""


def _included(wikitext: str) -> str:
    """What a page that includes this one shows of it: no header or footer."""
    if only := _ONLY.findall(wikitext):
        return "".join(only)
    return _NOT_INCLUDED.sub("", wikitext)


def _place(page: str) -> tuple[str, int]:
    """The key of the book and the number of the page, given the title of the page with its namespace."""
    name = page.partition(":")[2] or page
    number = _NUMBER.match(name)
    return (f"{number[1]}{number[3]}", int(number[2])) if number else (name, 0)
