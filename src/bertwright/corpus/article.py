"""The common form of all sources: articles of plain paragraphs, not yet split into sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


# Not a dataclass: there is one for every line of a dump, and a frozen one takes three times as long to make.
class Paragraph(NamedTuple):
    """A paragraph or list item of an article."""

    text: str
    """Plain text: one line, NFC, no markup, never empty."""

    heading: str | None = None
    """The title of the section that this paragraph opens; None where it continues a section."""


@dataclass(frozen=True)
class Article:
    """A page of a wiki, or a document of another source."""

    facts: Mapping[str, Any]
    """The content of its side-car line: id, title, revision, url, source, licence."""
    paragraphs: list[Paragraph]
