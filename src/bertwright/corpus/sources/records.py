"""Text files as records: documents, lines, or whatever a boundary ends."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bertwright.corpus.article import Article, Paragraph
from bertwright.corpus.characters import composed
from bertwright.corpus.errors import MAX_DOCUMENT, bad_encoding, too_long
from bertwright.corpus.sources.file import File, Reader
from bertwright.corpus.sources.job import Job
from bertwright.corpus.sources.pieces import read

LINE = re.compile(rb"\n")
# A boundary is white space, after a mark of at most so many bytes.
_MARK = 16
# Addresses of this form are WikiExtractor's, also in JSON lines and tables made of its output.
_WIKIEXTRACTOR = re.compile(r"[?&]curid=\d+$")
_ESCAPED = re.compile(r"(?:[^&<>]++|&(?:amp|lt|gt|quot);)*+")
_SURROGATES = re.compile("[\ud800-\udfff]")
# Bytes that are damage, but in a text of a few letters; more of them, and more than a share, are another encoding.
_FEW, _MOST_OF_FEW, _SHARE = 2, 0.1, 1e-3
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]+")  # all but white space


class RecordSplitter:
    """Cuts UTF-8 bytes into records; `bytes` is the length of what was read, `rest` what is left out at a cut end, and
    `replaced` the number of U+FFFD that stand for what is no UTF-8."""

    def __init__(self, path: Path, start: int, boundary: re.Pattern[bytes], *, cut: bool) -> None:
        self.bytes, self.rest, self.replaced, self._first_bad = 0, b"", 0, 0
        self._path, self._start, self._boundary, self._cut = path, start, boundary, cut

    def records(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
        """Each record that is not blank as (its byte offset in the text, the text with its boundary).

        `start` is the offset of the first block. With `cut`, or where it ends inside a character, the text breaks off
        in the last record, which is then left out: its last line may be half a line. Bytes that are not UTF-8 become
        U+FFFD; so many that the text must be in another encoding are a `SourceError` with the offset of the first, once
        all is read.
        """
        buffer, solid = bytearray(), 0  # and its length without the white space at its end
        for block in blocks:
            self.bytes += len(block)
            searched, done = max(0, solid - _MARK), 0  # here a boundary may have begun
            text = len(block.rstrip())
            solid = len(buffer) + text if text else solid
            buffer += block
            # In white space alone no boundary ends, and a long gap would be looked through again with each block of it.
            for match in self._boundary.finditer(buffer, searched) if text else ():
                if match.end() < solid:  # else the boundary may go on in the next block
                    yield from self._record(bytes(buffer[done : match.end()]), len(buffer) - done)
                    done = match.end()
            del buffer[:done]
            solid -= done
            if len(buffer) > MAX_DOCUMENT:
                raise too_long(self._path, self._start + self.bytes - len(buffer))
        # The last record may be half a line, which no later check could tell from a whole one.
        if self._cut or _ends_inside_a_character(buffer):
            self.rest = bytes(buffer)
        else:
            yield from self._record(bytes(buffer), len(buffer))
        if self.replaced > max(min(_FEW, _MOST_OF_FEW * self.bytes), _SHARE * self.bytes):
            raise bad_encoding(self._path, self._first_bad)

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
            # U+FFFD that the text holds itself was not put there by us.
            self.replaced += text.count("\ufffd") - data.count("\ufffd".encode())
            return text


def records(
    job: Job, boundary: re.Pattern[bytes], counts: Counter[str], state: dict[str, Any]
) -> Iterator[tuple[int, str]]:
    """The records of a piece; afterwards `counts` and `state` say what was read and how it ended."""
    splitter = RecordSplitter(job.file.path, job.piece.start, boundary, cut=job.piece.cut)
    for offset, text in splitter.records(read(job.file, job.piece)):
        yield offset, text
        state["last"] = f"the document at byte {offset:,}"
    counts["source_bytes"] = splitter.bytes
    if splitter.replaced:
        counts["replaced_characters"] = splitter.replaced
    state["ended"], state["lost_bytes"] = not (job.piece.cut or splitter.rest), len(splitter.rest)


def _ends_inside_a_character(data: bytearray) -> bool:
    """Whether the first bytes of a character of UTF-8 end the data, as only a text that was cut ends."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
    decoder.decode(bytes(data[-3:]))
    return bool(decoder.getstate()[0])


def plain_lines(text: str) -> list[str]:
    """The lines that are not blank, in NFC, without control characters, byte-order marks and halves of characters."""
    plain = composed(_whole(_CONTROLS.sub("", text)))
    return [line for line in plain.split("\n") if line.strip()]


def document(job: Job, text: str, given: dict[str, Any], place: int, *, escaped: bool = False) -> Article:
    """The article of a record that has facts of its own; what is not `given` as text or number is left out.

    A first line that only repeats the title is no sentence and is left out. WikiExtractor's documents, known by their
    address or by `escaped`, have their marks as characters again, in whatever format they came.
    """
    if escaped or _WIKIEXTRACTOR.search(str(given.get("url", ""))):
        text, given = unescaped(text), {**given, "title": unescaped(str(given.get("title") or ""))}
    known = {
        key: _whole(value) if isinstance(value, str) else int(value)  # pandas makes 12 a 12.0
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
    # WikiExtractor and its like repeat the title as the first line.
    if lines and lines[0].strip() == facts["title"]:
        lines = lines[1:]
    return Article(facts | job.origin, [Paragraph(line) for line in lines])


def unescaped(text: str) -> str:
    """The text with marks as characters, if WikiExtractor escaped them: then no "&", "<" or ">" stands there bare."""
    if "&" not in text or not _ESCAPED.fullmatch(text):
        return text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def _whole(text: str) -> str:
    """`text` with U+FFFD for every half of a surrogate pair: JSON can have one (`"\\ud800"`), UTF-8 cannot."""
    return _SURROGATES.sub("\ufffd", text)


def line_number(file: File, offset: int) -> int:
    """The line, from 1, of the byte at `offset` of the decoded text; reads up to there, so it is for errors."""
    lines = 1
    for block in Reader(file):
        lines += block[:offset].count(b"\n")
        offset -= len(block)
        if offset <= 0:
            break
    return lines
