"""The documents of a corpus with their metadata: titles, sections and paragraphs, and passages of bounded length."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import zstandard

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import naming
from bertwright.corpus.heldout import text_hash
from bertwright.corpus.text import FACTS, TEXT, read_documents, shard_names
from bertwright.corpus.words import count_tokens

WORDS = 80
"""Words of a passage, at most, except for one that is a single sentence."""
FEWEST = 8
"""Words of a passage, at least: shorter ones are captions and items of lists."""


class Section(NamedTuple):
    """A section of an article."""

    heading: str
    text: str
    """The beginning of its first paragraph."""


class Article:
    """A document of a corpus, with its metadata."""

    def __init__(self, sentences: list[str], facts: dict[str, Any]) -> None:
        """`facts` is its line of the side-car file."""
        self.sentences = sentences
        self.facts = facts
        self.title: str = facts.get("title") or ""
        self._headings: list[tuple[int, str]] = facts.get("headings") or []
        self._starts: list[int] = facts.get("paragraphs") or [0]

    @cached_property
    def hash(self) -> int:
        """The hash of its text, which decides whether it is held out."""
        return text_hash(self.sentences)

    @cached_property
    def lead(self) -> list[str]:
        """The sentences of its beginning, up to the first heading, as many as a passage has; none if it has a heading
        at once."""
        end = self._headings[0][0] if self._headings else len(self.sentences)
        return passage(self.sentences[:end])

    @cached_property
    def paragraphs(self) -> list[str]:
        """The beginnings of its paragraphs, in order; "" for one that is too short for a passage."""
        bounds = pairwise([*self._starts, len(self.sentences)])
        return [" ".join(passage(self.sentences[first:end])) for first, end in bounds]

    @cached_property
    def sections(self) -> list[Section]:
        """Its sections whose first paragraph is long enough, without the lead."""
        # Not the rest of a section, which may be a list.
        paragraphs = dict(zip(self._starts, self.paragraphs, strict=True))
        found = (Section(heading, paragraphs.get(at, "")) for at, heading in self._headings)
        return [section for section in found if section.text]

    @cached_property
    def halves(self) -> tuple[str, str] | None:
        """The beginning and the beginning of the second half, if both are passages without a sentence in common."""
        middle = len(self.sentences) // 2
        first, second = passage(self.sentences[:middle]), passage(self.sentences[middle:])
        return (" ".join(first), " ".join(second)) if first and second else None


def passage(sentences: Sequence[str]) -> list[str]:
    """The first sentences, at least one, up to `WORDS` words; none if these are fewer than `FEWEST` words."""
    chosen, words = list[str](), 0
    for sentence in sentences:
        more = count_tokens(sentence)
        if chosen and words + more > WORDS:
            break
        chosen.append(sentence)
        words += more
    return chosen if words >= FEWEST else []


def read_articles(corpus: Artifact) -> Iterator[Article]:
    """Yield the documents of a corpus in order, with one shard's streams open at a time; a document that is repeated
    because its source has a weight comes once.

    Raises `ArtifactError` if the metadata of a shard are not those of its documents.
    """
    for name in shard_names(corpus):
        side_car = name.removesuffix(TEXT) + FACTS
        with naming(corpus.path / side_car), corpus.file(side_car).open("rb") as handle:
            stream = zstandard.ZstdDecompressor().stream_reader(handle)
            lines = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
            before: list[str] = []
            for document in read_documents(corpus, name):
                if not (line := lines.readline()):
                    raise ArtifactError(
                        f"{corpus.path / side_car} has fewer lines than {name} has documents. Run the stage corpus "
                        "again."
                    )
                if document != before:
                    yield Article(document, json.loads(line))
                before = document
