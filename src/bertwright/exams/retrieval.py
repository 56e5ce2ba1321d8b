"""Whether the vector of a text finds the passage that belongs to it among all passages of an exam.

The items are pairs of texts, in any file that trains embeddings, or those of the held-out articles of a corpus
(`corpus.pairs`): the anchors are the queries, and the passages are all positives and negatives. A passage that is the
query itself, or has it in it, is no answer to this query, unless it is one of its positives. A tie is wrong. A model
reads its prompts, if it was trained with some, before queries and passages.

    recall@1, recall@10   the share of queries whose passage is the nearest, or among the ten nearest
    MRR                   the mean of 1 / rank

Names carry shapes: Q queries, P passages, H dimensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertwright.core.artifact import Artifact
from bertwright.core.config import UserPath
from bertwright.core.errors import DataError, MissingExtraError, RecipeError
from bertwright.corpus.pairs import PairsConfig, pairs_of
from bertwright.examples.labelled.records import records
from bertwright.exams.exam import RISES, Exam, Score, evenly, share_of
from bertwright.exams.word_ranking import bm25
from bertwright.model.text_encoder import Encoder
from bertwright.tasks.embedding.files import Layout, read_layout

QUERIES, PASSAGES = 1_000, 4_000
"""Most queries and passages of an exam."""
WITHIN = 10
"""Ranks of recall@10."""
_CONTAINED = 24
"""Characters of a query, at least, for it to be looked for in passages: a title is in many."""
_AT_ONCE = 256

NO_PROMPTS: Mapping[str, str] = MappingProxyType({})
Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Gives the vector of each text [N, H]."""


class Question(NamedTuple):
    """A query and the number of its passage."""

    query: str
    right: int
    kind: str


class RetrievalItems(NamedTuple):
    """The items of an exam."""

    questions: tuple[Question, ...]
    passages: tuple[str, ...]


def make_items(pairs: Iterable[tuple[str, str, Sequence[str], str]]) -> RetrievalItems:
    """The items of pairs: anchor, positive, negatives and kind of each; of more than `QUERIES` or `PASSAGES`, the
    queries spread evenly over each kind, and the first passages.

    Raises `DataError` if there are fewer than ten.
    """
    numbers: dict[str, int] = {}
    by_kind: dict[str, list[Question]] = {}
    for anchor, positive, negatives, kind in pairs:
        if len(numbers) < PASSAGES:
            for text in (positive, *negatives):
                numbers.setdefault(text, len(numbers))
            if anchor != positive:
                by_kind.setdefault(kind, []).append(Question(anchor, numbers[positive], kind))
    found = sum(map(len, by_kind.values()))
    if found < WITHIN:
        raise DataError(f"retrieval: there are {found} pairs, too few to score a model on. Give at least {WITHIN}.")
    share = min(1.0, QUERIES / found)
    chosen = [each for group in by_kind.values() for each in evenly(group, max(1, round(share * len(group))))]
    return RetrievalItems(tuple(chosen), tuple(numbers))


def read_items(file: Path) -> RetrievalItems:
    """The items of a file of pairs, as `make_items`; its columns are found as for training on it, and `kind`, if it has
    that, says what a pair is. Raises `DataError` naming the file if it lacks a column."""
    return make_items(_pairs_in(file))


def _pairs_in(file: Path) -> Iterator[tuple[str, str, Sequence[str], str]]:
    layout = read_layout(file, Layout())
    for place, record in records(file):
        anchor, positive = record.get(layout.anchor), record.get(layout.positive)
        if not isinstance(anchor, str) or not isinstance(positive, str):
            raise DataError(f"{file}: {place} has no text in {layout.anchor} and {layout.positive}. Correct it.")
        given: list[Any] = [record.get(name) for name in layout.negatives]
        negatives = [text for each in given for text in (each if isinstance(each, list) else [each]) if text]
        if anchor and positive:
            yield anchor, positive, list(map(str, negatives)), str(record.get("kind") or "")


def corpus_items(corpus: Artifact, heldout: float) -> RetrievalItems:
    """The items of the documents of a corpus that are held out; `heldout` is their share. The same corpus always gives
    the same items."""
    with TemporaryDirectory() as folder:
        config = PairsConfig(heldout=heldout)
        pairs = pairs_of(corpus, config, Path(folder) / "leads", held_only=True)
        return make_items(
            (pair.anchor, pair.positive, [pair.negative] if pair.negative else [], pair.kind) for pair in pairs
        )


class Retrieval(Exam):
    """Whether the vector of a text finds the passage that belongs to it, beside BM25 on the same passages."""

    kind: Literal["retrieval"] = "retrieval"
    data: UserPath | None = None
    """A file of pairs: columns anchor and positive, or others of such names, and if there are any negatives and
    kind."""
    items: RetrievalItems | None = Field(None, exclude=True)
    """The items themselves, instead of a file."""

    def read(self) -> RetrievalItems:
        """The items; raises `RecipeError` if there is no file, and `DataError` as `read_items`."""
        if self.items is None and self.data is None:
            raise RecipeError("retrieval: data is missing. Give the file with the pairs of the exam.")
        return self.items or read_items(self.data or Path())

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        items = self.read()
        yield from score_retrieval(items, encoder.encode, self.title, _read_beside_bm25(items), encoder.prompts)


def score_retrieval(
    items: RetrievalItems, encode: Encode, title: str, said: str = RISES, prompts: Mapping[str, str] = NO_PROMPTS
) -> Iterator[Score]:
    """Yield the scores of vectors, and how to read them: of all items, and the MRR of each kind. `prompts` are those of
    `Encoder`."""
    for name, each in _scores(items, vector_ranks(items, encode, prompts)).items():
        yield share_of(each, title, name, _chance(name, len(items.passages)), said)


def bm25_scores(items: RetrievalItems, title: str) -> Iterator[Score]:
    """Yield the scores of BM25; raises `MissingExtraError` without bm25s."""
    for name, each in _scores(items, word_ranks(items)).items():
        yield share_of(each, title, name, _chance(name, len(items.passages)))


def _read_beside_bm25(items: RetrievalItems) -> str:
    try:
        found = [f"{name} {100 * each.mean():.1f}" for name, each in _scores(items, word_ranks(items)).items()]
    except MissingExtraError as error:
        return f"{RISES}; beside them would be BM25: {error}"
    return f"BM25 on the same {len(items.passages):,} passages has {', '.join(found)}"


def _scores(items: RetrievalItems, ranks_Q: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """What each query scores, by the name of the score."""
    found = {
        "recall@1": (ranks_Q == 1).astype(np.float64),
        f"recall@{WITHIN}": (ranks_Q <= WITHIN).astype(np.float64),
        "MRR": 1 / ranks_Q,
    }
    kinds = np.array([question.kind for question in items.questions])
    counts = Counter(kinds.tolist())
    of_kind = {f"MRR {kind}": found["MRR"][kinds == kind] for kind, count in counts.items() if kind and count >= WITHIN}
    return found | (of_kind if len(counts) > 1 else {})


def _chance(name: str, passages: int) -> float:
    if name.startswith("recall@"):
        return min(1.0, int(name.removeprefix("recall@")) / passages)
    return float((1 / np.arange(1, passages + 1)).sum() / passages)


def vector_ranks(items: RetrievalItems, encode: Encode, prompts: Mapping[str, str] = NO_PROMPTS) -> NDArray[np.int64]:
    """[Q] the rank of each query's passage by the cosine of vectors, from 1; `prompts` as of `Encoder`."""
    before_query, before_passage = prompts.get("query", ""), prompts.get("document", "")
    passages_PH = unit(encode([before_passage + passage for passage in items.passages]))
    texts = list(dict.fromkeys(question.query for question in items.questions))
    queries = dict(zip(texts, unit(encode([before_query + text for text in texts])), strict=True))

    def scores() -> Iterator[NDArray[np.float32]]:
        for first in range(0, len(items.questions), _AT_ONCE):
            some = items.questions[first : first + _AT_ONCE]
            yield from np.stack([queries[each.query] for each in some]) @ passages_PH.T

    return _ranks(items, scores())


def word_ranks(items: RetrievalItems) -> NDArray[np.int64]:
    """[Q] the rank of each query's passage by BM25, from 1; raises `MissingExtraError` without bm25s."""
    return _ranks(items, bm25([question.query for question in items.questions], items.passages))


def _ranks(items: RetrievalItems, scores: Iterable[NDArray[np.float32]]) -> NDArray[np.int64]:
    """[Q] the ranks, given the scores of the passages [P] for each query."""
    right = dict[str, set[int]]()
    for each in items.questions:
        right.setdefault(each.query, set()).add(each.right)
    ranks = np.zeros(len(items.questions), np.int64)
    for number, (question, found_P) in enumerate(zip(items.questions, scores, strict=True)):
        # Not "at least as good": what is not a number must not win.
        better = set(np.flatnonzero(~(found_P < found_P[question.right])).tolist()) - right[question.query]
        # Only passages that are better have to be searched.
        ranks[number] = 1 + sum(not _has(items.passages[place], question.query) for place in better)
    return ranks


def _has(passage: str, query: str) -> bool:
    return passage == query or (len(query) >= _CONTAINED and query in passage)


def unit(vectors_NH: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors [N, H] divided by their lengths."""
    lengths_N1 = np.linalg.norm(vectors_NH, axis=1, keepdims=True)
    unit_NH: NDArray[np.float32] = vectors_NH / np.maximum(lengths_N1, 1e-12)
    return unit_NH
