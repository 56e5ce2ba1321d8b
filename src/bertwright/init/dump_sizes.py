"""The size of a Wikipedia, from the dated table `dump_sizes.tsv`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bertwright.corpus.download import database

DUMP_DATE, TEXT_DATE = "2019-03-01", "2023-09-01"
"""Dates of the dumps whose size is known, and of those whose text was counted."""
_ADDRESS = 150
"""Approximate bytes of an article's title and URL, which the table counts as text."""
_LEAST = 1000
"""Bytes of text below which a count of the table is taken for a failed one."""


@dataclass(frozen=True)
class WikiSize:
    """What the table contains about one Wikipedia; None for unknown values."""

    dump_bytes: int | None = None
    """Size of the compressed dump of `DUMP_DATE`, in bytes."""
    text_bytes: int | None = None
    """Size of the articles without markup on `TEXT_DATE`, in bytes."""
    articles: int | None = None
    """Number of articles on `TEXT_DATE`."""


@cache
def _table() -> dict[str, list[str]]:
    text = files("bertwright.init").joinpath("dump_sizes.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {row[0]: row[1:] for row in rows}


def wiki_size(language: str) -> WikiSize:
    """Return the sizes of the Wikipedia with this code; all None for an unknown one."""
    # By the name of the database, which for some languages is not the code: yue has zh_yue.
    row = _table().get(database(language).removesuffix("wiki"))
    if row is None:
        return WikiSize()
    dump, text, articles = (int(cell) if cell else None for cell in row)
    if text is None or articles is None or text < _LEAST:
        return WikiSize(dump)
    return WikiSize(dump, max(0, text - _ADDRESS * articles), articles)
