"""How large a Wikipedia is, by a table that says of which day: `dump_sizes.tsv`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bertwright.corpus.download import database

DUMP_DATE, TEXT_DATE = "2019-03-01", "2023-09-01"
"""Of the dumps whose size is known, and of those whose text was counted."""
_ADDRESS = 150
"""Bytes of an article's title and address, about, which the table counts with its text."""


@dataclass(frozen=True)
class Facts:
    """What the table says of one Wikipedia; None where it does not say."""

    dump_bytes: int | None = None
    """Of the packed dump of `DUMP_DATE`."""
    text_bytes: int | None = None
    """Of the articles without markup, of `TEXT_DATE`."""
    articles: int | None = None
    """Of `TEXT_DATE`."""


@cache
def _table() -> dict[str, list[str]]:
    text = files("bertwright.init").joinpath("dump_sizes.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {row[0]: row[1:] for row in rows}


def facts(language: str) -> Facts:
    """The sizes of the Wikipedia with this code; of an unknown one nothing."""
    row = _table().get(database(language).removesuffix("wiki"))
    if row is None:
        return Facts()
    dump, text, articles = (int(cell) if cell else None for cell in row)
    own = None if text is None or articles is None else max(0, text - _ADDRESS * articles)
    return Facts(dump, own, articles)
