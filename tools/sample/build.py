"""Build the sample wiki: a MediaWiki export (schema 0.11) in multistream bzip2, byte for byte reproducible.

`python -m tools.sample.build [FOLDER]` writes the full and the small export into a folder, by default the folder of
the package from which they are installed.
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
    """Return copies of three pages under other titles, for de-duplication to find."""
    return [replace(page, title=REPEATED[page.title]) for page in contents if page.title in REPEATED]


def _write(path: Path, contents: list[Page]) -> None:
    """Write the header, then a hundred pages per stream, then the closing tag, as Wikimedia's multistream dumps do.

    Pages of a kind stay together, which makes the file a third smaller than a random order would.
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
