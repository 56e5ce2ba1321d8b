"""The leads of a corpus's articles by title and by category: on disk, with some numbers for each article in memory.

An article takes 73 bytes of memory: a Wikipedia of six million articles 440 MB.

Names carry shapes: N articles.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from types import TracebackType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.core.rng import key
from bertwright.corpus.articles import read_articles
from bertwright.corpus.heldout import is_heldout
from bertwright.corpus.links import read_links

CATEGORIES = 3
"""Categories of an article that count: those with the least hashes."""
_TRIED = 8
"""Articles of a category that are tried as another one."""
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


class Leads:
    """The leads of the articles of a corpus with a title; the first of several with the same title."""

    def __init__(self, corpus: Artifact, heldout: float, file: Path) -> None:
        """Write the leads of the corpus to `file`, which is removed at the end of the `with` block; `heldout` is the
        share of the documents that are held out."""
        self._path = file
        titles, starts, hashes = array("Q"), array("Q", [0]), array("Q")
        with file.open("wb") as out:
            for article in read_articles(corpus):
                if article.title and article.lead:
                    titles.append(key("title", article.title))
                    hashes.append(article.hash)
                    starts.append(starts[-1] + out.write("\n".join(article.lead).encode()))
        found = np.frombuffer(titles, np.uint64) if titles else np.zeros(0, np.uint64)
        self._titles, first = np.unique(found, return_index=True)
        self._starts = np.frombuffer(starts, np.uint64)[:-1][first] if titles else np.zeros(0, np.uint64)
        self._ends = np.frombuffer(starts, np.uint64)[1:][first] if titles else np.zeros(0, np.uint64)
        all_hashes = np.frombuffer(hashes, np.uint64)[first] if titles else np.zeros(0, np.uint64)
        self._held = is_heldout(all_hashes, heldout)
        self._categories_N3 = self._categories(corpus)
        self._order = np.argsort(self._categories_N3, axis=None, kind="stable")
        self._file = file.open("rb")

    def __enter__(self) -> Leads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._titles)

    def find(self, title: str, held: bool) -> list[str]:
        """The sentences of the lead of the article with this title; none if there is no such article among those that
        are held out, or that are not."""
        place = self._place(title)
        return self._read(place) if place is not None and self._held[place] == held else []

    def other(self, title: str, held: bool, but: str = "") -> str:
        """The lead of another article of a category of the one with this title, drawn by a hash of the title, and not
        that of the title `but`; "" if there is none among those that are held out, or that are not."""
        if (own := self._place(title)) is None:
            return ""
        flat, left_out = self._categories_N3.ravel(), {own, self._place(but)}
        for category in self._categories_N3[own]:
            first, end = (int(np.searchsorted(flat, category, side, self._order)) for side in _SIDES)
            draw = key("other of category", title, int(category))
            for step in range(min(end - first, _TRIED) if category else 0):
                place = int(self._order[first + (draw + step) % (end - first)]) // CATEGORIES
                if place not in left_out and self._held[place] == held:
                    return " ".join(self._read(place))
        return ""

    def _categories(self, corpus: Artifact) -> NDArray[np.uint64]:
        """[N, 3] the hashes of the categories of each article, 0 where it has fewer."""
        found_N3 = np.zeros((len(self), CATEGORIES), np.uint64)
        for line in read_links(corpus):
            if (place := self._place(line["title"])) is not None:
                hashes = sorted({key("category", name) for name in line["categories"]})[:CATEGORIES]
                found_N3[place, : len(hashes)] = hashes
        return found_N3

    def _place(self, title: str) -> int | None:
        named = np.uint64(key("title", title))
        place = int(np.searchsorted(self._titles, named))
        return place if place < len(self._titles) and self._titles[place] == named else None

    def _read(self, place: int) -> list[str]:
        start = int(self._starts[place])
        self._file.seek(start)
        return self._file.read(int(self._ends[place]) - start).decode().split("\n")
