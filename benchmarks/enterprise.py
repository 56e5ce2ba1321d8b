"""How much of the prose of rendered pages our text of their wikitext has, and the other way round, as a Markdown table.

    python benchmarks/enterprise.py FILE.ndjson ...

Each file holds articles of Wikimedia Enterprise with both `article_body.html` and `article_body.wikitext`, such as the
samples in github.com/clovaai/webvicob (`resources/workspace_example/raw`). Paragraphs of citations are left out of both
texts, as the corpus stage does. A word counts as often as it occurs on its page; "in sentences" counts only those of
paragraphs of six or more words that end as sentences do. The namespaces of a wiki are not in the file, so their names
are those of `--names`, such as `File=Datei,Category=Kategorie`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bertwright.corpus.citation_filter import detect_references
from bertwright.corpus.html_text import read_html
from bertwright.corpus.sources.format import Paragraph
from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.site import CATEGORY, FILE, TEMPLATE, Site

NUMBERS = {"File": FILE, "Category": CATEGORY, "Template": TEMPLATE}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--names", default="", help="the wiki's own names of namespaces")
    options = parser.parse_args()
    given = (name.split("=") for name in options.names.split(",") if name)
    names = {NUMBERS[english]: (own,) for english, own in given}
    print("| file | pages | words of the HTML | found in ours | in sentences | found | of ours, in the HTML |")
    print("|---|---|---|---|---|---|---|")
    for file in options.files:
        print(row(file, names))


def row(file: Path, names: dict[int, tuple[str, ...]]) -> str:
    """The line of the table for a file."""
    sums: Counter[str] = Counter()
    for line in file.open(encoding="utf-8"):
        record: dict[str, Any] = json.loads(line)
        page = read_html(record["article_body"]["html"], wiki=True)
        if page.kind != "article":
            continue
        site = Site(record["in_language"]["identifier"], names)
        ours = words(prose(paragraphs(record["article_body"]["wikitext"], site, title=record["name"])))
        rendered = prose(page.paragraphs)
        shown, sentences = words(rendered), words(filter(is_sentence, rendered))
        sums["pages"] += 1
        for name, counted in (("shown", shown), ("sentences", sentences), ("ours", ours)):
            sums[name] += counted.total()
        sums["found"] += (shown & ours).total()
        sums["found_sentences"] += (sentences & ours).total()
    return (
        f"| {file.name} | {sums['pages']} | {sums['shown']:,} | {sums['found'] / sums['shown']:.2%} | "
        f"{sums['sentences']:,} | {sums['found_sentences'] / sums['sentences']:.2%} | "
        f"{sums['found'] / sums['ours']:.2%} |"
    )


def prose(found: list[Paragraph]) -> list[str]:
    """The texts of paragraphs that are no citations."""
    return [each.text for each, cited in zip(found, detect_references(found), strict=True) if not cited]


def words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in re.findall(r"\w+", text))


def is_sentence(text: str) -> bool:
    return len(text.split()) >= 6 and text.rstrip()[-1:] in '.!?。)"“”»'


if __name__ == "__main__":
    main()
