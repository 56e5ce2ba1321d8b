"""How much of the prose that readers of rendered pages see is in our text, and how much of our text they do not see.

    python benchmarks/rendered.py DUMP RENDERED.jsonl [--examples N]

RENDERED.jsonl has an object {"title", "html"} a line: the HTML of the dump's articles as MediaWiki renders them with
their own templates (its API's action=parse, or `Parser::parse` on a wiki into which the dump was imported). Prose is
the text of paragraphs, quotations and definitions, and of list items of six words or more; not of tables, captions,
footnotes, galleries, contents, boxes of navigation, formulas, error messages, or what is hidden.

found   words of that prose which stand in our page in the same run of three words
shown   words of our sentences, likewise, in any text of the rendered page

Prints both over all pages and the pages with the least found; with --examples the first missing runs of words.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from cleaners.pages import our_text, read_wiki

_WORD = re.compile(r"\w[\w\u0300-\u036f\u0900-\u0dff\u200c\u200d'’]*")
_RUN, _ITEM, _WORST = 3, 6, 15
_BREAKS = "p li dd dt blockquote div td th h1 h2 h3 h4 h5 h6 table ul ol dl pre figure br hr tr section"
_BLOCKS = frozenset(_BREAKS.split(" "))
_EMPTY = "area base br col embed hr img input link meta source track wbr"
_VOID = frozenset(_EMPTY.split(" "))
_PROSE = ("p", "li", "dd", "dt", "blockquote")
_NOT_PROSE = "table style script figure figcaption math pre gallery h1 h2 h3 h4 h5 h6"
_LEFT_OUT = frozenset(_NOT_PROSE.split(" "))
_CLASSES = re.compile(
    r"\b(?:reference|references|reflist|mw-references\S*|navbox\S*|thumb\S*|gallery\S*|toc\S*|noprint|mw-editsection|"
    r"error|scribunto-error|metadata|hatnote|infobox\S*|mwe-math\S*|catlinks|mw-empty-elt|noexcerpt|new-template)\b"
)
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_MISSING = re.compile(r"[&?]title=[^&]*:[^&]*&(?:amp;)?action=edit&(?:amp;)?redlink=1")


class Page(HTMLParser):
    """The prose of a rendered page, and all its words."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[tuple[str, str]] = []
        """Each text of prose, with the element that it is in."""
        self.everything: list[str] = []
        self._open: list[tuple[str, bool, bool]] = []  # element, left out, in prose
        self._text: list[str] = []
        self.feed(html)
        self.close()
        self._end()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self._end()
        if tag in _VOID:
            return
        _, out, prose = self._open[-1] if self._open else ("", False, False)
        given = {name: value or "" for name, value in attrs}
        out = out or tag in _LEFT_OUT or bool(_HIDDEN.search(given.get("style", "")))
        out = out or bool(_CLASSES.search(given.get("class", "")))
        # A template that the dump lacks is shown as a link to its page, which does not exist.
        out = out or (tag == "a" and bool(_MISSING.search(given.get("href", ""))))
        self._open.append((tag, out, tag in _PROSE or (prose and tag not in ("div", "ul", "ol", "dl"))))

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._end()
        if any(name == tag for name, _, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.everything.append(data)
        if self._open and self._open[-1][2] and not self._open[-1][1]:
            self._text.append(data)

    def _end(self) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        kind = next((name for name, _, prose in reversed(self._open) if name in _PROSE), "p")
        if text and (kind != "li" or len(_words(text)) >= _ITEM):
            self.blocks.append((kind, text))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _marks(words: list[str], runs: Counter[tuple[str, ...]]) -> list[bool]:
    """Whether each word is in a run of words that the other text has, each run as often as it is there."""
    found, left = [False] * len(words), runs.copy()
    length = min(_RUN, len(words))
    for i in range(len(words) - length + 1):
        run = tuple(words[i : i + length])
        if left[run] > 0:
            left[run] -= 1
            found[i : i + length] = [True] * length
    return found


def _runs(words: list[str]) -> Counter[tuple[str, ...]]:
    """Runs of each length up to three."""
    return Counter(tuple(words[i : i + n]) for n in range(1, _RUN + 1) for i in range(len(words) - n + 1))


def _missing(words: list[str], found: list[bool]) -> Iterator[str]:
    """Yield the runs of words that are not found, each with a word before and after it."""
    start = 0
    while start < len(words):
        if found[start]:
            start += 1
            continue
        stop = next((i for i in range(start, len(words)) if found[i]), len(words))
        yield " ".join([*words[max(0, start - 3) : start], "[", *words[start:stop], "]", *words[stop : stop + 3]])
        start = stop


def main() -> None:
    """Compare all pages and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path)
    parser.add_argument("rendered", type=Path)
    parser.add_argument("--examples", type=int, default=0)
    options = parser.parse_args()
    with options.rendered.open(encoding="utf-8") as lines:
        html = {page["title"]: page["html"] for page in map(json.loads, lines)}
    wiki = read_wiki(options.dump, None)
    pages, totals, examples = list[tuple[float, str, int]](), Counter[str](), list[str]()
    for page in wiki.articles:
        if page.title not in html:
            continue
        rendered, ours = Page(html[page.title]), _words(our_text(page, wiki))
        prose = _words("\n".join(text for _, text in rendered.blocks))
        shown = _marks(ours, _runs(_words(" ".join(rendered.everything))))
        found = _marks(prose, _runs(ours))
        totals.update(prose=len(prose), found=sum(found), ours=len(ours), shown=sum(shown))
        if prose:
            pages.append((sum(found) / len(prose), page.title, len(prose)))
        examples += [f"{page.title}: {run}" for run in _missing(prose, found)]
    print(f"{wiki.name}: {len(pages)} pages, {totals['prose']:,} words of prose")
    print(
        f"found {totals['found'] / max(1, totals['prose']):.2%}, shown {totals['shown'] / max(1, totals['ours']):.2%}"
    )
    for share, title, count in sorted(pages)[:_WORST]:
        print(f"{share:7.1%} of {count:6,}  {title}")
    print("\n".join(examples[: options.examples]))


if __name__ == "__main__":
    main()
