"""Link titles: the text of a link is masked in its sentence, and must be more probable there than four other titles.

The others are texts of links whose targets share a category with the right one's; if the wiki's categories do not give
four, texts of links of the same article. All are written with the same case at their beginning, none stands in the
sentence, and each has only words of the training text. Only the links of the corpus (`corpus.links`) are used.

A title's score is the mean over its pieces of the logarithm of their probability, each predicted from the sentence and
from the pieces of the title before it: a sum would favour short titles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.rng import key
from bertwright.corpus.heldout import text_hash
from bertwright.corpus.links import read_links
from bertwright.exams.pseudo_likelihood import Phrase, phrase_likelihoods
from bertwright.model.text_encoder import Encoder

OTHERS = 4
"""Titles beside the right one."""


class Cloze(NamedTuple):
    """A sentence without the text of a link, and what may be there."""

    before: str
    after: str
    titles: tuple[str, ...]
    """The right one is the first."""
    by: str
    """What the titles have in common: "category" or "article"."""


class _Link(NamedTuple):
    document: int
    sentence: int
    start: int
    text: str
    target: str


def right_titles(encoder: Encoder, items: Sequence[Cloze]) -> list[float]:
    """For each item 1 if the right title is the most probable, else 0; a tie is wrong.

    Raises `RecipeError` if the model has no head for masked tokens.
    """
    phrases = [Phrase(item.before, title, item.after) for item in items for title in item.titles]
    found = phrase_likelihoods(encoder, phrases)
    means = (found.sums / np.maximum(found.pieces, 1)).reshape(len(items), 1 + OTHERS)
    right: list[float] = (means[:, :1] > means[:, 1:]).all(1).astype(float).tolist()
    return right


def make_cloze(
    corpus: Artifact, documents: Sequence[list[str]], usable: Callable[[str], bool], known: Callable[[str], bool]
) -> Iterator[Cloze]:
    """Yield an item for each link in a `usable` sentence of held-out documents that has four others; those with a
    category first. `known`: whether the words of a text are words of the training text."""
    links = [link for link in _links(corpus, documents) if known(link.text)]
    of_target = _categories(corpus, {link.target for link in links})
    by_category, by_document = defaultdict[str, list[_Link]](list), defaultdict[int, list[_Link]](list)
    for link in links:
        by_document[link.document].append(link)
        for category in of_target.get(link.target, ()):
            by_category[category].append(link)
    asked = [link for link in links if usable(documents[link.document][link.sentence])]
    done = set[int]()
    for by in ("category", "article"):
        for number, link in enumerate(asked):
            if by == "category":
                near = [each for category in of_target.get(link.target, ()) for each in by_category[category]]
            else:
                near = by_document[link.document]
            sentence = documents[link.document][link.sentence]
            others = tuple(islice(_others(link, near, sentence), OTHERS))
            if number not in done and len(others) == OTHERS:
                done.add(number)
                before, after = sentence[: link.start], sentence[link.start + len(link.text) :]
                yield Cloze(before, after, (link.text, *others), by)


def _links(corpus: Artifact, documents: Sequence[list[str]]) -> Iterator[_Link]:
    """The links of the documents that the corpus keeps."""
    numbers = {f"{text_hash(document):016x}": number for number, document in enumerate(documents)}
    for line in read_links(corpus):
        if (number := numbers.get(line.get("hash", ""))) is not None:
            for sentence, start, end, target in line["links"]:
                yield _Link(number, sentence, start, documents[number][sentence][start:end], target)


def _categories(corpus: Artifact, titles: set[str]) -> Mapping[str, Any]:
    return {line["title"]: line["categories"] for line in read_links(corpus) if line["title"] in titles}


def _others(link: _Link, near: Sequence[_Link], sentence: str) -> Iterator[str]:
    """Yield the texts of other links that may stand for this one, in an order drawn for it."""
    seen, lowered = {link.text.casefold()}, sentence.casefold()
    drawn = sorted((key("wiki exam", "cloze", link.target, each.text), each) for each in near)
    for _, other in drawn:
        text = other.text.casefold()
        alike = other.text[0].isupper() == link.text[0].isupper()
        if alike and other.target != link.target and text not in seen and text not in lowered:
            seen.add(text)
            yield other.text
