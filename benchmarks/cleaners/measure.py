"""One dump measured: leftovers, words kept and holes of each cleaner."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from bertwright.corpus.config import FilterConfig
from bertwright.corpus.filter import DocumentFilter
from bertwright.corpus.sources.dump import Page

from .holes import Call, calls, output, squeeze
from .leftovers import WORD, find
from .pages import Wiki, our_text, sentences_of
from .peers import Peers

TOOLS = ("ours", "wikiextractor", "mwparserfromhell")


@dataclass(frozen=True)
class PageWords:
    """What became of one page's words: shares of the parser's prose words, and the words that are lost."""

    id: int
    title: str
    words: int
    kept: float
    found: float
    lost: Counter[str]


@dataclass
class Measured:
    """The counts of a dump, by cleaner."""

    name: str
    characters: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    leftovers: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Our leftovers by column, each with the text around."""
    prose: int = 0
    """How many words of mwparserfromhell's text are prose."""
    found: int = 0
    """How many of them our pages have too."""
    size: Counter[bool] = field(default_factory=Counter)
    """Bytes of our text by whether the document filter keeps the page."""
    pages: list[PageWords] = field(default_factory=list)
    calls: int = 0
    holes: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))
    not_found: Counter[str] = field(default_factory=Counter)

    def rate(self, tool: str, column: str) -> float:
        """Leftovers per 100 000 characters."""
        return self.leftovers[tool, column] / max(1, self.characters[tool]) * 1e5

    def worse(self, column: str) -> bool:
        """Whether ours has more of a leftover than the better of the others."""
        return self.rate("ours", column) > min(self.rate(tool, column) for tool in TOOLS[1:])


def measure(wiki: Wiki, peers: Peers) -> Measured:
    """All counts of the dump."""
    result = Measured(wiki.name)
    extracted, markup = peers.texts(wiki), peers.markup(wiki)
    keep = DocumentFilter(FilterConfig(), wiki.site.language)
    names = [name for group in wiki.hidden.values() for name in group]
    for page in wiki.articles:
        parsed = markup[page.id]
        ours = our_text(page, wiki)
        texts = dict(zip(TOOLS, (ours, extracted[page.id], parsed["text"]), strict=True))
        for tool, text in texts.items():
            result.characters[tool] += len(text)
            result.words[tool] += len(WORD.findall(text))
            for column, position in find(text, names, parsed["headings"], parsed["literal"]):
                result.leftovers[tool, column] += 1
                if tool == "ours":
                    around = re.sub(r"\s", " ", text[max(0, position - 40) : position + 50])
                    result.examples[column].append(f"{page.id} {page.title}: …{around}…")
        sentences = sentences_of(page, wiki, wiki.site.language)
        result.size[keep.verdict(sentences)[0] is None] += len("\n".join(sentences).encode())
        _count_words(result, page, ours, parsed)
        _count_holes(result, texts, parsed["lines"], wiki.site.language)
    return result


def _words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text))


def _count_words(result: Measured, page: Page, ours: str, parsed: dict[str, Any]) -> None:
    prose, words = _words(parsed["prose"]), _words(ours)
    lost = prose - words
    result.prose += prose.total()
    result.found += prose.total() - lost.total()
    if total := prose.total():
        kept, found = words.total() / total, 1 - lost.total() / total
        result.pages.append(PageWords(page.id, page.title, total, kept, found, lost))


def _count_holes(result: Measured, texts: dict[str, str], lines: list[Any], language: str) -> None:
    judged = [call for line in lines for call in calls(line, language)]
    result.calls += len(judged)
    for tool, text in texts.items():
        squeezed = squeeze(text)
        for call in judged:
            shown = output(call, squeezed)
            if shown is None:
                result.not_found[tool] += 1
            elif not shown:
                result.holes[tool].append(call)
