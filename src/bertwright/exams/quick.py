"""The suites `quick`, `wiki` and `retrieval`: what held-out documents of a corpus say of any model of its language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import regex

from bertwright.core.artifact import Artifact
from bertwright.corpus.heldout import heldout_documents
from bertwright.corpus.pairs import heldout_share
from bertwright.exams.exam import Exam
from bertwright.exams.masked_words import MaskedWords
from bertwright.exams.next_sentence import NextSentence, make_pairs
from bertwright.exams.perplexity import Perplexity
from bertwright.exams.retrieval import Retrieval, corpus_items
from bertwright.exams.vectors import Neighbours, Vectors
from bertwright.exams.wiki import Wiki, make_exam

TEXTS = 500
"""Held-out sentences whose words are masked, at most."""
ITEMS = 100
"""Items of each kind of the exam on articles: half of those of the suite `wiki`, for the sake of time."""
WORDS = 30
"""Frequent words whose neighbours are shown."""
_LETTERS = 40
"""Characters of a sentence that models are scored on, at least: titles and stubs say little of a model."""
_WORD = regex.compile(r"(?<![\p{L}\p{M}])[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{M}]{2,}(?![\p{L}\p{M}])")


def quick_suite(corpus: Artifact, heldout: float) -> list[Exam]:
    """The exams on the documents of a corpus that the stage `examples` holds out; `heldout` is their share."""
    documents = heldout_documents(corpus, heldout)
    texts = heldout_texts(documents)
    words, pairs = frequent_words(documents), make_pairs(documents)
    return [
        MaskedWords(texts=texts),
        Perplexity(texts=texts),
        *([NextSentence(pairs=pairs)] if pairs else []),
        Vectors(texts=texts),
        Wiki(items=make_exam(corpus, heldout, ITEMS)),
        *([Neighbours(words=words)] if words else []),
    ]


def wiki_suite(corpus: Artifact, heldout: float) -> list[Exam]:
    """Only the exam on articles."""
    return [Wiki(items=make_exam(corpus, heldout))]


def retrieval_suite(corpus: Artifact, heldout: float) -> list[Exam]:
    """Only whether vectors find passages; of a small corpus more documents are held out, as for training them."""
    share = heldout_share(heldout, int(corpus.counts["kept"]))
    return [Retrieval(items=corpus_items(corpus, share))]


def heldout_texts(documents: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Sentences of held-out documents, the first ones of all documents before the later ones."""
    long = [[each for each in document if len(each) >= _LETTERS] for document in documents]
    longest = max(map(len, long), default=0)
    ordered = (document[i] for i in range(longest) for document in long if i < len(document))
    return tuple(islice(ordered, TEXTS))


def frequent_words(documents: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The most frequent words of three letters or more in lower case, or in a script without case none."""
    counts = Counter(word for document in documents for sentence in document for word in _WORD.findall(sentence))
    return tuple(word for word, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:WORDS])
