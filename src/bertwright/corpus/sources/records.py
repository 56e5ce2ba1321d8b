"""Formats of text: files are split into records (documents, lines, anything that ends at a boundary), and records are
parsed into articles.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bertwright.core.json_values import without_surrogates
from bertwright.core.work_split import WorkSplit
from bertwright.corpus.characters import compose
from bertwright.corpus.config import SourceConfig
from bertwright.corpus.errors import MAX_DOCUMENT, bad_encoding, too_long
from bertwright.corpus.sources.file import ExtractJob, File, Piece, Reader
from bertwright.corpus.sources.format import Article, Paragraph, PassedOverError, SourceFormat
from bertwright.corpus.sources.pieces import between, bounds, read, spool

LINE = re.compile(rb"\n")
# A boundary is white space after a mark of at most this many bytes.
_MARK = 16
# The bytes of all white space that a boundary may hold; some are also parts of other characters.
_WHITE = b" \t\r\n\f\v\xc2\xa0\xe3\x80"
# WikiExtractor's URLs have this form, also in JSON lines and tables built from its output.
_WIKIEXTRACTOR = re.compile(r"[?&]curid=\d+$")
_ESCAPED = re.compile(r"(?:[^&<>]++|&(?:amp|lt|gt|quot);)*+")
# Up to `_FEW` invalid bytes (but at most `_MOST_OF_FEW` of a tiny text), or a share of `_SHARE`, count as damage; more
# mean that the text is in another encoding.
_FEW, _MOST_OF_FEW, _SHARE = 2, 0.1, 1e-3
_LINE_END = re.compile("\r\n?|[\n\v\f]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]+")  # all but white space


class RecordSplitter:
    """Splits UTF-8 bytes into records.

    `bytes` is the number of bytes read, `rest` the data left out at a truncated end, and `replaced` the number of
    U+FFFD that replace invalid UTF-8.
    """

    def __init__(
        self, path: Path, start: int, boundary: re.Pattern[bytes], *, cut: bool, encoding: str = "utf-8"
    ) -> None:
        self.bytes, self.rest, self.replaced, self._first_bad = 0, b"", 0, 0
        self._encoding = encoding.upper()
        self._path, self._start, self._boundary, self._cut = path, start, boundary, cut

    def records(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
        """Yield each record that is not blank as (its byte offset in the text, the text including its boundary).

        `start` is the offset of the first block. With `cut`, or if the data end inside a character, the text is
        truncated; the last record is then left out, as its last line may be incomplete. Invalid UTF-8 becomes U+FFFD.
        If there is so much of it that the text must be in another encoding, raises `SourceError` with the offset of the
        first invalid byte once everything is read.
        """
        buffer, solid = bytearray(), 0  # `solid`: length of the buffer without white space at its end
        for block in blocks:
            self.bytes += len(block)
            searched, done = max(0, solid - _MARK), 0  # a boundary may begin here
            text = len(block.rstrip(_WHITE))
            solid = len(buffer) + text if text else solid
            buffer += block
            # No boundary ends within white space, and a long gap would be searched again for each of its blocks.
            for match in self._boundary.finditer(buffer, searched) if text else ():
                if match.end() < solid:  # otherwise the boundary may continue in the next block
                    yield from self._record(bytes(buffer[done : match.end()]), len(buffer) - done)
                    done = match.end()
            del buffer[:done]
            solid -= done
            if len(buffer) > MAX_DOCUMENT:
                raise too_long(self._path, self._start + self.bytes - len(buffer))
        # The last record may be an incomplete line, which no later check could distinguish from a complete one.
        if self._cut or _ends_inside_a_character(buffer):
            self.rest = bytes(buffer)
        else:
            yield from self._record(bytes(buffer), len(buffer))
        if self.replaced > most_replaced(self.bytes):
            raise bad_encoding(self._path, self._first_bad, self._encoding)

    def _record(self, data: bytes, before_end: int) -> Iterator[tuple[int, str]]:
        offset = self._start + self.bytes - before_end
        stripped = data.lstrip()
        offset += len(data) - len(stripped)
        text = self._decoded(stripped, offset).removeprefix("\ufeff")
        if text.strip():
            yield offset, text

    def _decoded(self, data: bytes, offset: int) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            text = data.decode(errors="replace")
            self._first_bad = self._first_bad if self.replaced else offset + error.start
            # Do not count U+FFFD that the text itself contains.
            self.replaced += text.count("\ufffd") - data.count("\ufffd".encode())
            return text


def records(
    job: ExtractJob, boundary: re.Pattern[bytes], counts: Counter[str], state: dict[str, Any]
) -> Iterator[tuple[int, str]]:
    """Yield the records of a piece; afterwards `counts` and `state` describe what was read and how it ended."""
    splitter = RecordSplitter(job.file.path, job.piece.start, boundary, cut=job.piece.cut, encoding=job.file.encoding)
    for offset, text in splitter.records(read(job.file, job.piece)):
        yield offset, text
        state["last"] = f"the document at byte {offset:,}"
    counts["source_bytes"] += splitter.bytes
    if splitter.replaced:
        counts["replaced_characters"] += splitter.replaced
    state["ended"], state["lost_bytes"] = not (job.piece.cut or splitter.rest), len(splitter.rest)


def most_replaced(bytes: int) -> float:
    """How many characters of a text may be replaced; more mean that it is in another encoding."""
    return max(min(_FEW, _MOST_OF_FEW * bytes), _SHARE * bytes)


class TruncatedRecordError(Exception):
    """A record has no end, because the file was truncated within it."""


def text_format(
    kind: str,
    matches: Callable[[bytes], bool],
    boundary: Callable[[SourceConfig], re.Pattern[bytes]],
    parse: Callable[[ExtractJob, int, str], Article | None],
    **fields: Any,
) -> SourceFormat:
    """A format of text whose documents end where `boundary` matches; `fields` are those of `SourceFormat`.

    `parse(job, offset, record)` returns the article of the record at this byte of the text, or None if it has none. It
    raises `TruncatedRecordError` for a record without an end, which is left out, and counted as lost.
    """

    def splits(
        file: File, config: SourceConfig, number: int, first: int, folder: Path, share: WorkSplit
    ) -> Iterator[Piece]:
        ends = boundary(config)
        cuts = bounds(file, ends)
        yield from between(cuts, number, first) if cuts else spool(file, ends, number, first, folder, share)

    def documents(job: ExtractJob, counts: Counter[str], state: dict[str, Any]) -> Iterator[Article]:
        truncated, before = -1, dict[str, Any]()  # the offset of a truncated record, and the state before it
        for offset, record in records(job, boundary(job.source), counts, state):
            truncated = -1  # a record without an end that is not the last is only empty
            try:
                article = parse(job, offset, record)
            except TruncatedRecordError:
                truncated, before = offset, state.copy()
                continue
            except PassedOverError as passed:
                count_passed(passed, counts)
                continue
            if article:
                count_article(job, article, counts)
                yield article
        if truncated >= 0:
            del state["last"]  # which names the truncated record
            state.update(before, ended=False, lost_bytes=job.piece.start + counts["source_bytes"] - truncated)

    return SourceFormat(kind, matches, splits, documents, **fields)


def count_article(job: ExtractJob, article: Article, counts: Counter[str]) -> None:
    """Count a document that was read from a record."""
    if job.header.database:  # of a wiki, whose other pages are counted as well
        counts["pages"] += 1
    if article.replaced:
        counts["replaced_characters"] += article.replaced


def count_passed(passed: PassedOverError, counts: Counter[str]) -> None:
    """Count a page of a wiki that is no article."""
    counts["pages"] += 1
    counts[passed.kind] += 1


def _ends_inside_a_character(data: bytearray) -> bool:
    """Whether the data end inside a UTF-8 character, which only happens in a truncated text."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
    decoder.decode(bytes(data[-3:]))
    return bool(decoder.getstate()[0])


def plain_lines(text: str) -> list[str]:
    """The lines that are not blank, in NFC, without control characters or byte-order marks.

    Lone surrogates become U+FFFD.
    """
    plain = compose(without_surrogates(_CONTROLS.sub("", text)))
    return [line for line in _LINE_END.split(plain) if line.strip()]


def document(job: ExtractJob, text: str, given: dict[str, Any], place: int) -> Article:
    """The article of a record with its own metadata in `given`, of which only strings and integers are used.

    A first line that only repeats the title is not a sentence and is left out. Documents of WikiExtractor, recognised
    by the format of the file, the format that the recipe names, or their URL, are unescape.
    """
    made = "wikiextractor" in (job.file.format, job.source.format)
    if made or _WIKIEXTRACTOR.search(str(given.get("url", ""))):
        text, given = unescape(text), {**given, "title": unescape(str(given.get("title") or ""))}
    known = {
        key: without_surrogates(value) if isinstance(value, str) else int(value)  # pandas turns 12 into 12.0
        for key, value in given.items()
        if isinstance(value, str | int) or (isinstance(value, float) and value.is_integer())
    }
    facts = {
        "id": known.get("id", place),
        "title": str(known.get("title", "")),
        "revision": known.get("revision", known.get("revid", 0)),
        "url": str(known.get("url", "")),
    }
    lines = plain_lines(text)
    # WikiExtractor and similar programs repeat the title as the first line.
    if lines and lines[0].strip() == facts["title"]:
        lines = lines[1:]
    return Article(facts | job.origin, [Paragraph(line) for line in lines])


def unescape(text: str) -> str:
    """Unescape the text if WikiExtractor escaped it, in which case it has no bare "&", "<" or ">"."""
    if "&" not in text or not _ESCAPED.fullmatch(text):
        return text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def line_number(file: File, offset: int) -> int:
    """The line, from 1, of the byte at `offset` of the decoded text. Reads up to there, so use it only for errors."""
    lines = 1
    for block in Reader(file):
        lines += block[:offset].count(b"\n")
        offset -= len(block)
        if offset <= 0:
            break
    return lines
