"""What the document filter keeps and drops, on hand-labelled documents and on entire dumps, as Markdown tables.

    python benchmarks/prose.py DATA_FOLDER [--dumps FOLDER]

prose.toml holds the labels: twenty documents of each of ten wikis, whose dumps are read from DATA_FOLDER/wiki. With the
default settings of `corpus.filter`, the tables report:

bytes kept            of all text of the dump
prose kept            bytes of labelled prose that are kept, relative to all labelled prose
precision of dropping dropped labelled documents that are not prose, relative to all dropped labelled documents
not prose, dropped    dropped labelled documents that are not prose, relative to all labelled documents that are not

Thresholds were chosen on half of the wikis; the other half judges them. `--dumps` adds a line for each dump in a folder
with the bytes kept and why the rest was dropped; the language of a dump is the beginning of its name ("uk.xml.bz2",
"ukwiki-…").
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertwright.corpus.config import FilterConfig
from bertwright.corpus.filter import DocumentFilter
from cleaners.pages import has_pages, read_wiki, sentences_of

LABELS = Path(__file__).with_suffix(".toml")


@dataclass
class Counts:
    """Counts of one wiki, or of several together."""

    documents: Counter[str] = field(default_factory=Counter)
    """Documents by the reason they were dropped for, or "kept"."""
    size: Counter[str] = field(default_factory=Counter)
    """Bytes by the same reasons."""
    labelled: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    """Labelled documents by (is prose, is kept)."""
    prose: Counter[bool] = field(default_factory=Counter)
    """Bytes of labelled prose by whether it is kept."""

    def add(self, other: Counts) -> None:
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            mine.update(theirs)


def count(path: Path, language: str, labels: dict[int, bool]) -> Counts:
    """Filter the articles of a dump and count; `labels` says for some ids whether the document is prose."""
    wiki, keep, counts = read_wiki(path, None, language), DocumentFilter(FilterConfig(), language), Counts()
    for page in wiki.articles:
        sentences = sentences_of(page, wiki, language)
        reason = keep.verdict(sentences)[0] or "kept"
        size = len("\n".join(sentences).encode())
        counts.documents[reason] += 1
        counts.size[reason] += size
        if page.id in labels:
            counts.labelled[labels[page.id], reason == "kept"] += 1
            if labels[page.id]:
                counts.prose[reason == "kept"] += size
    return counts


def row(name: str, counts: Counts) -> list[str]:
    dropped = counts.labelled[False, False], counts.labelled[True, False]
    others = counts.labelled[False, False], counts.labelled[False, True]
    return [
        name,
        share(counts.size["kept"], counts.size.total()),
        share(counts.prose[True], counts.prose.total()),
        f"{share(dropped[0], sum(dropped))} ({dropped[0]} of {sum(dropped)})",
        f"{share(others[0], sum(others))} ({others[0]} of {sum(others)})",
    ]


def share(part: int, of: int) -> str:
    return f"{part / of:.1%}" if of else "-"


def labelled(data: Path) -> Iterator[tuple[str, bool, Counts]]:
    """For each labelled wiki: its language, whether it judges the thresholds, and its counts."""
    wikis: dict[str, Any] = tomllib.loads(LABELS.read_text(encoding="utf-8"))
    for language, wiki in wikis.items():
        labels = {document["id"]: document["prose"] for document in wiki["documents"]}
        yield language, not wiki["chosen_on"], count(data / "wiki" / wiki["file"], language, labels)


def language_of(path: Path) -> str:
    name = re.split(r"[.-]", path.name)[0]
    return name.removesuffix("wiki").replace("_", "-") or name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--dumps", type=Path, help="a folder of other dumps")
    options = parser.parse_args()
    halves = {False: Counts(), True: Counts()}
    print("| wiki | | bytes kept | prose kept | precision of dropping | not prose, dropped |\n|" + " --- |" * 6)
    for language, judges, counts in labelled(options.data):
        halves[judges].add(counts)
        name, *cells = row(language, counts)
        print(f"| {name} | {'judges' if judges else 'chosen on'} | {' | '.join(cells)} |")
    for judges, counts in halves.items():
        name, *cells = row("all", counts)
        print(f"| {name} | {'judge' if judges else 'chosen on'} | {' | '.join(cells)} |")
    if options.dumps:
        print("\n| dump | documents | bytes | bytes kept | dropped |\n|" + " --- |" * 5)
        for path in sorted(options.dumps.glob("*.xml*")):
            if not has_pages(path):
                continue
            counts = count(path, language_of(path), {})
            why = ", ".join(f"{name} {n}" for name, n in counts.documents.most_common() if name != "kept")
            total = counts.size.total()
            cells = [path.name, f"{counts.documents.total()}", f"{total:,}", share(counts.size["kept"], total), why]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
