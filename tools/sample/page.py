"""A page of the sample wiki before conversion to XML, and the hand-written pages in `articles/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_REDIRECT = re.compile(r"#(?:REDIRECT|ÁTIRÁNYÍTÁS)\s*\[\[([^\]|#]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Page:
    """A title with its namespace prefix, the namespace's number, and the wikitext."""

    title: str
    namespace: int
    text: str

    @property
    def redirect(self) -> str | None:
        """The title that this page redirects to, or None for a page with its own text."""
        match = _REDIRECT.match(self.text)
        return match[1].strip() if match else None


def handwritten() -> list[Page]:
    """The pages of `articles/*.wiki` by file name; each has `title:` and `ns:` lines, then a blank line."""
    return [_read(path) for path in sorted((Path(__file__).parent / "articles").glob("*.wiki"))]


def _read(path: Path) -> Page:
    header, _, text = path.read_text(encoding="utf-8").partition("\n\n")
    fields = dict(line.split(": ", 1) for line in header.splitlines())
    return Page(fields["title"], int(fields["ns"]), text.rstrip("\n"))
