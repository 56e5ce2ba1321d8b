"""A dump of any size: the pages of a real one repeated with changed text.

    python benchmarks/synthetic.py DUMP OUT MEGABYTES

Writes about MEGABYTES of XML to OUT: multistream bz2 if its name ends in .bz2, else plain. From the second round on,
every third longer word is replaced by another word of the dump, so that no two documents are alike, and page titles
and ids are new. The same arguments produce the same file. Only the real dump is held in memory.
"""

import bz2
import itertools
import lzma
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PAGES_PER_STREAM = 100
_PAGE = re.compile(r"  <page>\n.*?</page>\n", re.DOTALL)
_WORD = re.compile(r"(?<= )[^\W\d_]{4,}(?= )")
_EVERY = 3


def main(dump: str, out: str, megabytes: str) -> None:
    pack = bz2.compress if out.endswith(".bz2") else bytes
    with open(out, "wb") as handle:
        for group in groups(Path(dump), int(megabytes) * 1_000_000):
            handle.write(pack("".join(group).encode()))


def groups(dump: Path, size: int) -> Iterator[list[str]]:
    """The head, pages and end of a dump of about `size` bytes of XML, some pages at a time."""
    with _opened(dump) as handle:
        text = handle.read().decode()
    pages = _PAGE.findall(text)
    words = sorted(set(_WORD.findall(text)))
    yield [text[: text.index("  <page>")]]
    written = 0
    for turn in itertools.count():
        for first in range(0, len(pages), PAGES_PER_STREAM):
            group = [_changed(page, turn, words) for page in pages[first : first + PAGES_PER_STREAM]]
            yield group
            written += sum(len(page.encode()) for page in group)
            if written >= size:
                yield ["</mediawiki>\n"]
                return


def _opened(dump: Path) -> BinaryIO:
    return {".xz": lzma.open, ".bz2": bz2.open}.get(dump.suffix, open)(dump, "rb")  # type: ignore[operator,no-any-return]


def _changed(page: str, turn: int, words: list[str]) -> str:
    if turn == 0:
        return page
    seen = itertools.count()

    def other(match: re.Match[str]) -> str:
        number = next(seen)
        return match[0] if number % _EVERY else words[(turn * 7_919 + number * 104_729) % len(words)]

    page = re.sub("<title>(.*?)</title>", rf"<title>\1 {turn}</title>", page, count=1)
    page = re.sub("<id>([0-9]+)</id>", lambda match: f"<id>{int(match[1]) + turn * 10**9}</id>", page, count=1)
    return _WORD.sub(other, page)


if __name__ == "__main__":
    main(*sys.argv[1:])
