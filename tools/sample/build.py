"""Builds the sample wiki: a MediaWiki export (schema 0.11) in multistream bzip2, the same bytes each time.

`python -m tools.sample.build [FOLDER]` writes the full and the small export into a folder, by default the one of the
package that they are installed from.
"""

from __future__ import annotations

import bz2
import sys
from dataclasses import replace
from pathlib import Path

from bertwright.core.files import write_atomic
from bertwright.sample import SAMPLE, SMALL
from tools.sample.endless import endless_pages
from tools.sample.export import HEADER, TAIL, page_xml
from tools.sample.generated import pages
from tools.sample.page import Page, handwritten

PAGES_PER_STREAM = 100
REPEATED = {"Sakk": "Sakkjáték", "Hópehely": "Hókristály", "Bridge": "Bridges"}


def build(path: Path) -> None:
    """Write the full export to `path`: every hand-written and generated page."""
    _write(path, [*handwritten(), *_repeated(handwritten()), *endless_pages(), *pages("hu"), *pages("en")])


def build_small(path: Path) -> None:
    """Write the small export to `path`: the hand-written pages and every fourteenth generated one."""
    generated = [*pages("hu"), *pages("en")]
    _write(path, [*handwritten(), *_repeated(handwritten()), *generated[::14]])


def _repeated(contents: list[Page]) -> list[Page]:
    """Copies of three pages under another title, for de-duplication to find."""
    return [replace(page, title=REPEATED[page.title]) for page in contents if page.title in REPEATED]


def _write(path: Path, contents: list[Page]) -> None:
    """Header, then a hundred pages to a stream, then the closing tag: the layout of Wikimedia's multistream dumps.

    Pages of a kind stay together, which makes the file a third smaller than a drawn order would.
    """
    texts = [page_xml(number, page) for number, page in enumerate(contents, start=1)]
    blocks = ["".join(texts[i : i + PAGES_PER_STREAM]) for i in range(0, len(texts), PAGES_PER_STREAM)]
    streams = [bz2.compress(block.encode("utf-8"), 9) for block in (HEADER, *blocks, TAIL)]
    write_atomic(path, b"".join(streams))


def main(folder: str = str(SAMPLE.parent)) -> None:
    """Write both exports into `folder`."""
    build(Path(folder) / SAMPLE.name)
    build_small(Path(folder) / SMALL.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
