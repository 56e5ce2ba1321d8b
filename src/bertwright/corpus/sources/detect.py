"""Detection of a file's format and compression from its content, not from its name."""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from bertwright.core.files import naming
from bertwright.corpus.errors import SourceError
from bertwright.corpus.sources import pages
from bertwright.corpus.sources.compression import MAGIC, Compression
from bertwright.corpus.sources.dump import no_export, refuse_fragments, root_element
from bertwright.corpus.sources.file import File, Reader
from bertwright.corpus.sources.known import FORMATS, format_of
from bertwright.corpus.sources.pages import charset
from bertwright.corpus.sources.records import most_replaced
from bertwright.corpus.sources.stand_ins import refuse_error_page, refuse_missing, refuse_stand_in

_FOREIGN = {
    b"7z\xbc\xaf\x27\x1c": ("7z", "Unpack it first, e.g. with `7z x {name}`"),
    b"PK\x03\x04": ("zip", "Unpack it first, e.g. with `unzip {name}`"),
    b"Rar!\x1a\x07": ("rar", "Unpack it first, e.g. with `unrar x {name}`"),
    b"LZIP": ("lzip", "Unpack it first, e.g. with `lzip -d {name}`"),
    b"\x04\x22\x4d\x18": ("lz4", "Unpack it first, e.g. with `lz4 -d {name}`"),
    b"\x5d\x00\x00": ("lzma", "Unpack it first, e.g. with `xz --format=lzma -d {name}`"),
    b"ZIM\x04": ("ZIM (Kiwix)", "Unpack it, e.g. with `zimdump dump --dir=pages {name}`, and give the folder"),
    b"ARROW1": ("Arrow (random access)", "Save it as Parquet"),
    b"%PDF-": ("PDF", "Convert it to text, e.g. with `pdftotext {name}`"),
    b"SQLite format 3": ("SQLite", "Export its texts as JSON lines"),
}
"""What begins a file that cannot be read, its name, and what to do."""
_COLUMN = re.compile(r"[A-Za-z_][\w .-]{0,39}")
_COLUMNS = {"text", "content", "body", "title", "id", "url", "label", "sentence", "document", "article", "abstract"}
_HEAD = 4096


def examine(path: Path, format: str = "auto") -> File:
    """Detect what the file at `path` is. Raises `SourceError` if it is missing, unreadable, or not of the `format`."""
    try:
        with path.open("rb") as handle:
            magic = handle.read(16)
    except OSError as error:
        refuse_missing(path)
        reason = error.strerror or str(error)
        raise SourceError(
            f"cannot read {path}: {reason}. Set corpus.source to the path of a file that you have permission to read."
        ) from error
    if not magic:
        raise SourceError(f"{path} is empty (0 bytes). Download it again.")
    named = None if format == "auto" else format_of(format)
    tried = FORMATS if named is None or named in FORMATS else (named,)
    for known in tried:
        if not known.is_text and known.matches(magic) and named in (None, known):
            return File(path, known.kind)
    if named is None or named.kind != "text":
        refuse_stand_in(path, _beginning(path))
    file = _text_file(path, magic)
    head = _head(file).removeprefix(codecs.BOM_UTF8)
    if named is None and pages.matches(head):
        refuse_error_page(path, head, packed=file.compression != "plain")
    # Nothing in plain text or JSON lines identifies them with certainty, so a recipe that names them is trusted.
    detected = named.kind if named and not named.certain else _kind(path, head)
    if named and detected not in (named.kind, *named.also):
        raise SourceError(
            f"{path} is not a {named.kind} file: it looks like {detected}. Remove corpus.source.format to "
            "detect the format."
        )
    # As of any byte that is no character, a few are tolerated.
    if (offset := head.find(b"\0")) >= 0 and head.count(b"\0") > most_replaced(len(head)):
        raise SourceError(
            f"{path} is not text: byte {offset:,} is zero. Give a dump, UTF-8 text, JSONL or Parquet file, unchanged."
        )
    if b"\r" in head and b"\n" not in head:
        raise SourceError(
            f"{path} ends its lines with carriage returns alone, so that it would be one paragraph. Convert it first, "
            "e.g. with `tr '\\r' '\\n'`."
        )
    encoding = charset(head) if detected == pages.FORMAT.kind and file.encoding == "utf-8" else file.encoding
    return replace(file, format=detected, encoding=encoding)


def _text_file(path: Path, magic: bytes) -> File:
    compression = _compression(path, magic)
    head = _head(File(path, "text", compression))
    if is_tar := head[257:262] == b"ustar":
        head = _head(File(path, "text", compression, is_tar=True))
        if not head:
            raise SourceError(f"{path} is an archive without files, or truncated in the first one. Download it again.")
    if not head:
        raise SourceError(f"{path} is an empty {compression} file, or truncated in its first block. Download it again.")
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise SourceError(f"{path} is UTF-32 (its byte-order mark says so at byte 0). Convert it to UTF-8 first.")
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return File(path, "text", compression, "utf-16" if wide else "utf-8", is_tar)


def _compression(path: Path, magic: bytes) -> Compression:
    for prefix, (name, remedy) in _FOREIGN.items():
        if magic.startswith(prefix):
            raise SourceError(
                f"{path} is a {name} file; plain, bz2, gz, xz and zstd can be read. {remedy.format(name=path.name)}."
            )
    for compression, pattern in MAGIC.items():
        if re.match(pattern, magic):
            return compression
    # An error page from a server is saved under the requested file name.
    if path.suffix[1:] in MAGIC:
        looks = "an HTML page" if pages.matches(_beginning(path)) else f"something that begins with {magic[:12]!r}"
        raise SourceError(
            f"{path} is not a {path.suffix[1:]} file but {looks}: the download failed. Download it again."
        )
    return "plain"


def _beginning(path: Path) -> bytes:
    with naming(path), path.open("rb") as handle:
        return handle.read(_HEAD)


def _head(file: File) -> bytes:
    return _read_head(file, file.state)


# Cached, because every check of a recipe asks, and the first block of a bz2 file can only be decoded whole.
@lru_cache(maxsize=64)
def _read_head(file: File, state: tuple[int, int]) -> bytes:
    head = b""
    for block in Reader(file, size=_HEAD):
        head += block
        if len(head) >= _HEAD:
            break
    return head


def _kind(path: Path, head: bytes) -> str:
    """The format of a text that begins with `head`."""
    texts = [known for known in FORMATS if known.is_text]
    if certain := next((known.kind for known in texts if known.certain and known.matches(head)), None):
        return certain
    _refuse(path, head)
    return next(known.kind for known in texts if known.matches(head))


def _refuse(path: Path, head: bytes) -> None:
    """Raise `SourceError` if the text is almost of a supported format, or of an unsupported one."""
    name = root_element(head)
    if name.startswith("!"):
        raise SourceError(
            f"{path} declares a document type (<{name}>). MediaWiki exports never do, so such files are not "
            "accepted. Give an unchanged export."
        )
    if head.lstrip().startswith(b"<?xml") or ".xml" in path.suffixes:
        raise no_export(path, name)
    if re.match(rb'\s*\[\s*\{\s*"', head):
        raise SourceError(f"{path} is one JSON array. Write one object per line instead, e.g. with `jq -c '.[]'`.")
    refuse_fragments(path, head)
    if table := _columns(path, head):
        columns = ", ".join(repr(column[:40]) for column in table)
        raise SourceError(
            f"{path} is a table (CSV or TSV) with the columns {columns}, and such tables are not supported as text. "
            "Labelled texts for a classifier belong in train.phases.N.data. Convert other tables to JSON lines or "
            "Parquet, e.g. with pandas.read_csv(...).to_parquet(...); if it is in fact running text, set "
            'corpus.source.format = "text".'
        )


def _columns(path: Path, head: bytes) -> list[str]:
    """The columns of a table of separated values, detected by its file name, or by a header row that all rows match."""
    lines = head[:_HEAD].decode(errors="replace").splitlines()
    named = any(suffix.lower() in (".csv", ".tsv") for suffix in path.suffixes[-2:])
    for separator in "\t,;|":
        rows = list(csv.reader(lines[:-1] if len(head) >= _HEAD else lines, delimiter=separator))
        columns = [column.strip() for column in rows[0]] if rows else []
        names = set(map(str.lower, columns)) & _COLUMNS
        if named and len(columns) > 1 and all(columns):
            return columns
        # Except the last row, which may be cut off at the end of the head.
        fits = len(rows) > 2 and all(len(row) == len(columns) for row in rows[:-1])
        if len(columns) > 1 and names and fits and all(map(_COLUMN.fullmatch, columns)):
            return columns
    return lines[:1] if named else []
