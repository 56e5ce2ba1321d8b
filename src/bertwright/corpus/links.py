"""The categories and links of a wiki's articles: `links.jsonl.zst` of a corpus, a line per article in order.

Each line is JSON: {"title", "categories", "hash", "links"}. "hash" is that of the text, and "links" has [sentence,
first character, end, title of the target], each target once: all links of an article that is held out where
`examples.heldout` is a tenth, for exams, and of the others at most three, drawn by a hash, for pairs of texts. The text
is the one before de-duplication: if paragraphs were dropped after that, the hash is not that of the document.
"""

from __future__ import annotations

import io
import json
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from bertwright.core.artifact import Artifact
from bertwright.core.files import naming, write_atomic
from bertwright.core.rng import key
from bertwright.corpus.characters import in_word
from bertwright.corpus.decisions import DECISIONS
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.corpus.part import read_array, unpack
from bertwright.corpus.sources.format import Article
from bertwright.corpus.wikitext.links import article_links, categories
from bertwright.corpus.wikitext.site import Site
from bertwright.corpus.words import has_unspaced

LINKS = "links.jsonl.zst"
SHARE = 0.1
"""Of larger held-out shares, only the articles of this one have all their links."""
FEW = 3
"""Links that are kept of the other articles: of all links the file would have ten times the size."""
_WAITING = ".links.jsonl.zst"
_LONGEST = 60
"""Characters of the text of a link, at most: longer ones are descriptions."""


class LinkWriter:
    """Collects the links of the documents of one part; `finish` writes them next to the part."""

    def __init__(self, part: Path, site: Site) -> None:
        self._path, self._site, self._lines = part.with_suffix(_WAITING), site, list[bytes]()

    def add(self, article: Article, sentences: list[str]) -> None:
        """Add an article that extraction keeps."""
        line: dict[str, Any] = {
            "title": article.facts["title"],
            "categories": categories(article.wikitext, self._site),
        }
        own_hash, links = text_hash(sentences), article_links(article.wikitext, self._site)
        if is_heldout(np.array([own_hash], np.uint64), SHARE)[0]:
            found = list(_located(links, sentences))
        else:
            drawn = sorted(links, key=lambda link: key("links", line["title"], link[1]))
            found = sorted(islice(_located(drawn, sentences), FEW))
        line |= {"hash": f"{own_hash:016x}", "links": found}
        self._lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def finish(self) -> Path:
        """Write the file and return its path."""
        # A temporary file, removed with the draft: fast compression and no fsync.
        write_atomic(self._path, zstandard.ZstdCompressor(level=1).compress(b"".join(self._lines)), sync=False)
        return self._path


def gather_links(parts: Iterable[Path], out: Path) -> None:
    """Write the links of all parts that have any, of documents in the corpus, with one part in memory at a time."""
    compressor, packed = zstandard.ZstdCompressor(level=3).compressobj(), list[bytes]()
    for part in parts:
        if part.with_suffix(_WAITING).is_file():
            lines = unpack(part.with_suffix(_WAITING)).splitlines(keepends=True)
            kept = np.flatnonzero(read_array(part.with_suffix(DECISIONS))["copies"])
            packed += [compressor.compress(lines[row]) for row in kept.tolist()]
    write_atomic(out, b"".join([*packed, compressor.flush()]))


def read_links(corpus: Artifact) -> Iterator[dict[str, Any]]:
    """Yield the line of each article of a corpus; nothing if it has no wiki, or was made before links were kept."""
    for name in corpus.names(LINKS):
        with naming(corpus.path / name), corpus.file(name).open("rb") as handle:
            stream = zstandard.ZstdDecompressor().stream_reader(handle)
            yield from map(json.loads, io.TextIOWrapper(stream, encoding="utf-8", newline="\n"))


def _located(links: Iterable[tuple[str, str]], sentences: Sequence[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield the sentence, the first character, the end and the target of each link whose text is in the sentences as
    whole words; the first place counts, where authors link."""
    text, seen = "\n".join(sentences), set[str]()
    starts = list(accumulate((len(each) + 1 for each in sentences), initial=0))
    for label, target in links:
        if target in seen or not 1 < len(label) <= _LONGEST or not any(map(str.isalpha, label)):
            continue
        seen.add(target)
        if (place := _find(label, text)) >= 0:
            sentence = bisect(starts, place) - 1
            start = place - starts[sentence]
            yield sentence, start, start + len(label), target


def _find(label: str, text: str) -> int:
    """Where a text begins within another as whole words; -1 if nowhere."""
    place, anywhere = -1, None
    while (place := text.find(label, place + 1)) >= 0:
        end = place + len(label)
        # "[[Budapest]]en" shows one word, of which the label is a part.
        if not (in_word(text[place - 1 : place]) or in_word(text[end : end + 1])):
            break
        anywhere = has_unspaced(label) if anywhere is None else anywhere
        if anywhere:
            break
    return place
