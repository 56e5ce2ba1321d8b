"""How the running time of our wikitext cleaner scales with the amount of markup, and its speed on real pages.

    python benchmarks/cleaner.py [DUMP ...]

Cleans every bait (repeated markup) at two lengths; the longer is 8 MB unless --megabytes says otherwise. The ratio of
the two times is 2 if the work is linear in the length and 4 if it is quadratic. Also cleans the articles of each DUMP
once, with the default settings.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from bertwright.corpus.config import WikitextConfig
from bertwright.corpus.wikitext.clean import paragraphs
from bertwright.corpus.wikitext.definitions import Definitions
from bertwright.corpus.wikitext.site import Site
from cleaners.pages import read_wiki

SITE = Site("en", {6: ("File",), 14: ("Category",)})
BAIT: dict[str, tuple[str, str]] = {
    "open templates": ("{{", ""),
    "open links": ("[[", ""),
    "open tables": ("\n{|", ""),
    "open variants": ("-{", ""),
    "open comments": ("<!-", ""),
    "open references": ("<ref>", ""),
    "open maths": ("<math>", ""),
    "open external links": ("[http://a ", ""),
    "open parameters": ("{{{", ""),
    "open everything": ("{{[[-{\n{|<ref><nowiki>", ""),
    "nested templates": ("{{nowrap|a", "}}"),
    "nested unknown templates": ("{{x|a", "}}"),
    "nested links": ("[[a|b", "]]"),
    "nested files": ("[[File:a.png|b", "]]"),
    "nested tables": ("\n{|\n|a", "\n|}"),
    "nested variants": ("-{zh-hans:a", "}-"),
    "nested defined templates": ("{{a|b", "}}"),
    "ends alone": ("}}]]}-\n|}", ""),
    "bold": ("a'''b''c'", ""),
    "commas and spaces": (" ,;", ""),
    "brackets": ("( ", ") "),
    "headings": ("=a\n==b", ""),
    "references to characters": ("&#", ""),
    "underscores": ("__a_", ""),
    "combining marks": ("\u0301\u0323", ""),
    "prose": ("The ''river'' [[Sárd (river)|Sárd]] is {{convert|12|km|mi}} long.<ref>x</ref>\n", ""),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=float, default=8)
    options = parser.parse_args()
    definitions = Definitions({"a": "{{{1}}}"})
    print("| bait | MB/s | twice the length, times |\n| --- | --- | --- |")
    for name, (opening, closing) in BAIT.items():
        count = int(options.megabytes * 1e6) // len(opening + closing)
        pages = [opening * n + closing * n for n in (count // 2, count)]
        half, whole = (seconds(lambda p=p: paragraphs(p, SITE, WikitextConfig(), "", definitions)) for p in pages)
        print(f"| {name} | {len(pages[1]) / 1e6 / whole:.1f} | {whole / half:.2f} |", flush=True)
    for path in options.dumps:
        wiki = read_wiki(path, None)
        size = sum(len(page.text.encode()) for page in wiki.articles)
        spent = seconds(lambda w=wiki: [paragraphs(page.text, w.site) for page in w.articles])
        print(f"{wiki.name}: {size / 1e6 / spent:.1f} MB of wikitext per second")


def seconds(work: Callable[[], object]) -> float:
    """The processor time of one call of `work`, in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
