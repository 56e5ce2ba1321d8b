"""Pairs of texts that belong together, from a corpus without labels, to train and to test sentence embeddings with.

    title        the title of an article, and its lead, in half of the pairs without its first sentence, which has the
                 title in it
    section      title and heading of a section, and the section's beginning
    link         a sentence with a link, and the lead of the link's target
    neighbour    two neighbouring paragraphs
    halves       the beginnings of the two halves of a document; only where it has no two such paragraphs

Text of no wiki has no titles, headings or links, so it gives the last two kinds only. A title and a link also have the
lead of another article of the same category as a hard negative. An article that is held out gives only held-out pairs,
and a link from or to one none but these. No text of a pair is the other, or a part of it, but a title may be.

Everything is drawn by hashes of texts, so the same corpus always gives the same pairs. Memory: see `leads`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity, Section
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, naming
from bertwright.core.log import SILENT, Log
from bertwright.core.rng import key, unit_interval
from bertwright.corpus.articles import Article, passage, read_articles
from bertwright.corpus.heldout import is_heldout
from bertwright.corpus.leads import Leads
from bertwright.corpus.links import FEW, SHARE, read_links
from bertwright.corpus.words import count_tokens

VERSION = 1
FOLDER = "data"
TRAIN, HELDOUT = f"{FOLDER}/train.jsonl", f"{FOLDER}/dev.jsonl"
"""The files of the artifact, in a folder that training reads as anyone's pairs."""
KINDS = ("title", "section", "link", "neighbour", "halves")
EACH = 3
"""Pairs of each kind that an article gives, at most."""
_PER_ARTICLE = 1 + EACH + FEW + EACH
_HELDOUT_ARTICLES = 1_000
_LINKING = (5, 60)
"""Words of a sentence with a link."""


class Pair(NamedTuple):
    """Two texts that belong together."""

    anchor: str
    positive: str
    negative: str
    """One that is like the positive, but does not belong to the anchor; "" if none is known."""
    group: str
    """What the pair is from: pairs of the same group may belong together, too."""
    kind: str
    held: bool

    @property
    def line(self) -> bytes:
        """The pair as a line of JSON, with the columns that `train.objective.kind = "embedding"` reads."""
        # Also where there is none: columns are those of the first line.
        negatives = [self.negative] if self.negative else []
        record = {"anchor": self.anchor, "positive": self.positive, "negatives": negatives}
        return json.dumps({**record, "group": self.group, "kind": self.kind}, ensure_ascii=False).encode() + b"\n"


class PairsConfig(Section):
    """Which pairs are made."""

    heldout: float = Field(0.02, ge=0, lt=1)
    """The share of the documents that give held-out pairs; as `examples.heldout`, the same documents."""
    most: int = Field(500_000, gt=0)
    """Training pairs, about: of a larger corpus a part of the articles is used."""


def heldout_share(share: float, documents: int) -> float:
    """The share of the documents whose pairs are held out: `share`, or in a small corpus up to a tenth, so that a test
    has a thousand articles."""
    return max(share, min(SHARE, _HELDOUT_ARTICLES / max(documents, 1)))


def make_pairs(corpus: Artifact, config: PairsConfig, out: Path, log: Log = SILENT) -> Artifact:
    """Open the pairs of a corpus at `out`, or write them: `data/train.jsonl` and, held out,
    `data/dev.jsonl`.

    The counts are those of the pairs of each kind. Raises `DataError` if the corpus gives no training pairs or no
    held-out ones.
    """
    identity = Identity("pairs", VERSION, {"pairs": config}, {"corpus": corpus.fingerprint})
    return build(out, identity, log, lambda draft: _write(corpus, config, draft, log))


def _write(corpus: Artifact, config: PairsConfig, draft: Path, log: Log) -> dict[str, Any]:
    counts = {False: Counter[str](), True: Counter[str]()}
    make_folder(draft / FOLDER)
    with naming(draft), (draft / TRAIN).open("wb") as train, (draft / HELDOUT).open("wb") as held:
        for pair in pairs_of(corpus, config, draft / ".leads", log):
            (held if pair.held else train).write(pair.line)
            counts[pair.held][pair.kind] += 1
    for is_held, name in ((False, "training"), (True, "held-out")):
        if not counts[is_held]:
            raise DataError(
                f"the corpus {corpus.path} gives no {name} pairs: {corpus.counts['kept']:,} documents with few "
                "paragraphs are too little to train vectors of sentences on. Give more text, or a file of pairs "
                "(--pairs)."
            )
    return {
        "train": _ordered(counts[False]),
        "heldout": _ordered(counts[True]),
        "train_pairs": counts[False].total(),
        "heldout_pairs": counts[True].total(),
    }


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def pairs_of(
    corpus: Artifact, config: PairsConfig, scratch: Path, log: Log = SILENT, held_only: bool = False
) -> Iterator[Pair]:
    """Yield the pairs of a corpus, article by article; `scratch` is a file that is written and removed. With
    `held_only` those of documents that are held out."""
    documents = int(corpus.counts["kept"])
    share = min(1.0, config.most / (_PER_ARTICLE * max(documents, 1)))
    with Leads(corpus, config.heldout, scratch) as leads:
        for number, (article, line) in enumerate(_with_links(corpus)):
            hashes = np.array([article.hash], np.uint64)
            held = bool(is_heldout(hashes, config.heldout)[0])
            drawn = key("pairs", article.hash)
            if held or (not held_only and unit_interval(np.array([drawn], np.uint64))[0] < share):
                yield from _of_article(article, line, leads, held)
            if number % 1_000 == 0:
                log.progress("pairs", number, documents, "documents")


def _with_links(corpus: Artifact) -> Iterator[tuple[Article, dict[str, Any]]]:
    """Yield each article with its line of links, empty if there is none or if it is one of another text."""
    lines = read_links(corpus)
    line = next(lines, None)
    for article in read_articles(corpus):
        # Both have the order of the corpus; documents of other sources have no line.
        if line is not None and article.title == line["title"]:
            same = line.get("hash") == f"{article.hash:016x}"
            yield article, line if same else {**line, "links": []}
            line = next(lines, None)
        else:
            yield article, {}


def _of_article(article: Article, line: dict[str, Any], leads: Leads, held: bool) -> Iterator[Pair]:
    draw, group = key("pair", article.hash), article.title or f"{article.hash:016x}"
    if article.title and article.lead:
        # What is left without the first sentence seldom has the title's words.
        rest = passage(article.lead[1:])
        lead = rest if rest and (held or draw % 2) else article.lead
        yield Pair(article.title, " ".join(lead), leads.other(article.title, held), group, "title", held)
    if article.title:
        for section in _drawn(article.sections, draw):
            yield Pair(f"{article.title}: {section.heading}", section.text, "", group, "section", held)
    for sentence, _, _, target in _drawn(line.get("links", ()), draw):
        text, found = article.sentences[sentence], leads.find(target, held)
        if target != article.title and found and _LINKING[0] <= count_tokens(text) <= _LINKING[1]:
            positive = " ".join(found)
            if _differ(text, positive):
                yield Pair(text, positive, leads.other(target, held, but=article.title), group, "link", held)
    texts = article.paragraphs
    neighbours = [(a, b) for a, b in pairwise(texts) if a and b and _differ(a, b)]
    for first, second in _drawn(neighbours, draw):
        yield Pair(first, second, "", group, "neighbour", held)
    if not neighbours and (halves := article.halves) and _differ(*halves):
        yield Pair(*halves, "", group, "halves", held)


def _drawn(found: Sequence[Any], draw: int) -> Sequence[Any]:
    """At most `EACH` of what was found, spread evenly, beginning at a place that is drawn."""
    if len(found) <= EACH:
        return found
    first = draw % len(found)
    return [found[(first + i * len(found) // EACH) % len(found)] for i in range(EACH)]


def _differ(text: str, other: str) -> bool:
    """Whether neither text has the other in it, whatever their case and white space."""
    first, second = (" ".join(each.casefold().split()) for each in (text, other))
    return first not in second and second not in first
