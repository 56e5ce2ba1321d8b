"""Regression 6: every shard draws the same random numbers.

create_pretraining_data.py (Google's, in NVIDIA DeepLearningExamples BERT @4733603 and the Hungarian recipe) is run once
per shard, each run with `random.Random(12345)` and one stream for everything. Two shards of equal shape get the same
order of documents, the same cuts, the same "random" next sentences and the same masked positions; and because one
stream serves a whole shard, what happens to a document depends on all documents before it, so cutting the corpus
elsewhere changes the examples.

Here each decision is a hash of (seed, pass, text of the document, chunk): shards differ, and the cuts of a document
and its next-sentence labels are the same in whatever shard it lies. Only where a random second segment comes from
depends on the shard, because it is drawn from the shard's documents. There is no switch back.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests.reference import pairs as reference

from bertwright.core.rng import below, key
from bertwright.corpus.heldout import text_hash
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.documents import documents_of
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.store import Documents

LENGTH = 64
BUDGET = LENGTH - 3
Text = list[list[str]]  # documents of sentences


class Example(NamedTuple):
    document: int
    pair: reference.Pair
    masked: tuple[int, ...]


def text(documents: int, name: str) -> Text:
    """Documents of 8 to 27 sentences of 3 to 17 words: of the same shape under any name, with words of its own."""
    stream = key("shape")
    counts = 8 + below(stream, np.arange(documents), 20)
    lengths = [3 + below(stream, 1000 * (d + 1) + np.arange(n), 15) for d, n in enumerate(counts)]
    return [[" ".join(f"{name}{d}" for _ in range(n)) for n in of_document] for d, of_document in enumerate(lengths)]


def shuffled(items: Iterable[int], numbers: reference.Numbers) -> list[int]:
    """A shuffle, as a sort by numbers of the one stream."""
    return sorted(items, key=lambda _: numbers.share("shuffle", 0))


def original(documents: Text, seed: int = 12345) -> list[Example]:
    """One pass over a shard (truncation left out): the words never enter a decision."""
    numbers = reference.Generator(seed)
    lengths = [[len(sentence.split()) for sentence in document] for document in documents]
    examples = []
    for d in shuffled(range(len(documents)), numbers):
        for pair in reference.walk(lengths, d, BUDGET, numbers):
            size = min(LENGTH, 3 + sum(lengths[d][slice(*pair.a)]) + sum(lengths[pair.b_document][slice(*pair.b)]))
            masked = shuffled(range(1, size), numbers)[: max(1, round(size * 0.15))]
            examples.append(Example(d, pair, tuple(masked)))
    return examples


def tokenised(documents: Text) -> Documents:
    """The documents with one token a word."""
    lengths = np.array([len(sentence.split()) for document in documents for sentence in document])
    hashes = [text_hash(document) for document in documents]
    return documents_of(np.zeros(lengths.sum(), np.uint16), [len(d) for d in documents], lengths, hashes)


def ours(documents: Text) -> NDArray[np.void]:
    config = ExamplesConfig(seed=12345, passes=1)
    return plan_passes(tokenised(documents), np.ones(len(documents), np.bool_), LENGTH, config, 1)[0]


def owners(rows: NDArray[np.void], documents: Documents) -> NDArray[np.int64]:
    """The document each row's A lies in."""
    sentence_ends = np.concatenate([[0], np.cumsum(documents.sentences, dtype=np.int64)])
    return np.searchsorted(sentence_ends[documents.documents.astype(np.int64)], rows["a_start"], side="right") - 1


def decisions(documents: Text) -> list[list[tuple[int, int, bool]]]:
    """What is decided about each document alone: where A starts in it, how long A is, whether B is random."""
    store, rows = tokenised(documents), ours(documents)
    starts = np.cumsum([0, *(sum(len(s.split()) for s in document) for document in documents)])
    found: list[list[tuple[int, int, bool]]] = [[] for _ in documents]
    for owner, row in zip(owners(rows, store).tolist(), rows, strict=True):
        found[owner].append((int(row["a_start"]) - int(starts[owner]), int(row["a_count"]), bool(row["label"])))
    return found


def test_the_original_gives_two_shards_the_same_decisions() -> None:
    first, second = text(30, "alma"), text(30, "szilva")
    assert not {s for d in first for s in d} & {s for d in second for s in d}
    assert original(first) == original(second)


def test_ours_differ_between_shards_of_equal_shape() -> None:
    first, second = decisions(text(30, "alma")), decisions(text(30, "szilva"))
    assert not any(a == b for a, b in zip(first, second, strict=True))


def test_the_original_depends_on_where_the_corpus_is_cut() -> None:
    corpus = text(30, "alma")
    cuts_in_whole = {(e.document, e.pair.a) for e in original(corpus) if e.document < 15}
    cuts_alone = {(e.document, e.pair.a) for e in original(corpus[:15])}
    assert len(cuts_in_whole & cuts_alone) < 0.5 * len(cuts_in_whole)


def test_ours_do_not() -> None:
    corpus = text(30, "alma")
    assert decisions(corpus) == decisions(corpus[:15]) + decisions(corpus[15:])
    assert decisions(corpus) == decisions(corpus[:7]) + decisions(corpus[7:9]) + decisions(corpus[9:])
