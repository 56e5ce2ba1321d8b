"""How good our text of real Wikipedia pages is, compared with wikiextractor and mwparserfromhell, as Markdown tables.

    python benchmarks/quality.py DATA_FOLDER --peers DIR [--wiki NAME ...] [--limit N] [--pages]

DATA_FOLDER/wiki holds dumps (.xml.bz2, .xml.xz); dumps without <siteinfo> are skipped, because wikiextractor reads no
page of them. DIR becomes a virtual environment with the two other cleaners, installed from the package index, and keeps
their results, so a second run measures only our cleaner. The tables report for each dump:

leftovers    pieces of markup per 100 000 characters of text (cleaners/leftovers.py)
words kept   our words relative to mwparserfromhell's text without captions, categories, tables, references and
             headings, which are found in the parse tree (cleaners/markup.py); "found" is the share of these
             words, each as often as it occurs on its page, that our page has too; "bytes kept" is the share of our
             text that the document filter keeps with its default settings
holes        template calls in sentences that left no text (cleaners/holes.py)
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from cleaners.leftovers import COLUMNS
from cleaners.measure import TOOLS, Measured, measure
from cleaners.pages import read_wiki
from cleaners.peers import Peers

WORST, COMMONEST, EXAMPLES = 20, 40, 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--peers", type=Path, required=True, metavar="DIR")
    parser.add_argument("--wiki", nargs="*", default=[""], help="dumps whose names begin so; all unless given")
    parser.add_argument("--limit", type=int, help="first articles of each dump only")
    parser.add_argument("--pages", action="store_true", help="also the pages, leftovers and templates to look at")
    options = parser.parse_args()
    peers = Peers(options.peers.resolve())
    results = []
    for path in sorted((options.data / "wiki").glob("*.xml.*")):
        if path.name.startswith(tuple(options.wiki)) and (wiki := read_wiki(path, options.limit)).site.namespaces:
            print(f"{path.name} ...", file=sys.stderr, flush=True)
            results.append(measure(wiki, peers))
    print_leftovers(results)
    print_words(results)
    print_holes(results)
    for result in results if options.pages else ():
        print_pages(result)


def table(head: list[str], rows: list[list[str]]) -> None:
    print("\n| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")


def print_leftovers(results: list[Measured]) -> None:
    print("\n### Leftovers per 100 000 characters (ours in bold where the better of the others has fewer)")
    rows = []
    for result in results:
        for tool in TOOLS:
            cells = [f"{result.rate(tool, column):.1f}" for column in COLUMNS]
            if tool == "ours":
                cells = [f"**{c}**" if result.worse(k) else c for c, k in zip(cells, COLUMNS, strict=True)]
            rows.append([result.name, tool, f"{result.words[tool] / 1000:.0f}", *cells])
    table(["dump", "cleaner", "words, thousands", *COLUMNS], rows)


def print_words(results: list[Measured]) -> None:
    print("\n### Words kept, of mwparserfromhell's prose")
    rows = []
    for result in results:
        ours, prose = result.words["ours"], result.prose
        rows.append(
            [
                result.name,
                f"{prose:,}",
                f"{ours:,}",
                f"{ours / max(1, prose):.1%}",
                f"{result.found / max(1, prose):.1%}",
                f"{result.size[True] / max(1, result.size.total()):.1%}",
            ]
        )
    table(["dump", "its prose, words", "ours", "kept", "found", "bytes kept"], rows)


def print_holes(results: list[Measured]) -> None:
    print("\n### Holes: calls in sentences that left nothing (not found)")
    rows = []
    for result in results:
        holes = {tool: len(result.holes[tool]) for tool in TOOLS}
        cells = [f"{holes[tool]:,} ({result.not_found[tool]:,})" for tool in TOOLS]
        share = f"{holes['ours'] / holes['wikiextractor']:.1%}" if holes["wikiextractor"] else "-"
        rows.append([result.name, f"{result.calls:,}", *cells, share])
    table(["dump", "calls", *TOOLS, "ours, of wikiextractor's"], rows)


def print_pages(result: Measured) -> None:
    print(f"\n### {result.name}\n\nPages with the smallest share of words found:\n")
    for page in sorted(result.pages, key=lambda page: page.found)[:WORST]:
        lost = " ".join(list(page.lost)[:30])
        print(f"- {page.id} {page.title}: found {page.found:.1%}, kept {page.kept:.1%} of {page.words:,}; lost: {lost}")
    print("\nOur leftovers:\n")
    for column in COLUMNS:
        for example in result.examples[column][:EXAMPLES]:
            print(f"- {column}: {example}")
    print("\nTemplates of our holes:\n")
    for name, count in Counter(name for hole in result.holes["ours"] for name in hole.names).most_common(COMMONEST):
        print(f"- {count} {name}")


if __name__ == "__main__":
    main()
