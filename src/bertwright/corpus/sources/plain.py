"""Plain text: documents separated by blank lines, one paragraph or one sentence a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bertwright.corpus.errors import MAX_DOCUMENT, bad_encoding, too_long

_BLANK_LINES = re.compile(rb"\n(?:[ \t\r]*\n)+")
_CONTROLS = dict.fromkeys(c for c in [*range(0x20), *range(0x7F, 0xA0)] if chr(c) not in "\t\n\r\x85")


class DocumentSplitter:
    """Cuts UTF-8 bytes into documents; `bytes` is the length of what was read, `rest` what is left out at a cut end."""

    def __init__(self, path: Path, start: int, *, cut: bool) -> None:
        self.bytes, self.rest = 0, b""
        self._path, self._start, self._cut = path, start, cut

    def documents(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, list[str]]]:
        """Each document as (its byte offset in the text, its lines), without control characters.

        `start` is the offset of the first block. With `cut` the text breaks off in the last document, which is then
        left out: its last line may be half a line. Bytes that are not UTF-8 are a `SourceError` with their offset.
        """
        buffer = bytearray()
        for block in blocks:
            self.bytes += len(block)
            searched = max(0, len(buffer) - 4096)
            buffer += block
            done = 0
            for match in _BLANK_LINES.finditer(buffer, searched):
                if match.end() < len(buffer):  # else the blank lines may go on in the next block
                    yield from self._document(bytes(buffer[done : match.start()]), len(buffer) - done)
                    done = match.end()
            del buffer[:done]
            if len(buffer) > MAX_DOCUMENT:
                raise too_long(self._path, self._start + self.bytes - len(buffer))
        if self._cut:
            self.rest = bytes(buffer)
        else:
            yield from self._document(bytes(buffer), len(buffer))

    def _document(self, data: bytes, before_end: int) -> Iterator[tuple[int, list[str]]]:
        offset = self._start + self.bytes - before_end
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise bad_encoding(self._path, offset + error.start) from error
        lines = [line for line in text.removeprefix("\ufeff").translate(_CONTROLS).split("\n") if line.strip()]
        if lines:
            yield offset + len(data) - len(data.lstrip()), lines
