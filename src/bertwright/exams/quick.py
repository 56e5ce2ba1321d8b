"""The suite `quick`: what the held-out documents of a corpus say of any model of its language, in minutes."""

from __future__ import annotations

from itertools import islice

from bertwright.core.artifact import Artifact
from bertwright.exams.exam import Exam
from bertwright.exams.masked_words import MaskedWords
from bertwright.exams.vectors import Vectors
from bertwright.exams.wiki import Wiki, heldout_documents, make_exam

TEXTS = 500
"""Held-out sentences whose words are masked, at most."""
_LETTERS = 40
"""Characters of such a sentence, at least: titles and stubs say little of a model."""


def quick_suite(corpus: Artifact, heldout: float) -> list[Exam]:
    """The exams on the documents of a corpus that the stage `examples` holds out; `heldout` is their share."""
    texts = heldout_texts(corpus, heldout)
    return [MaskedWords(texts=texts), Vectors(texts=texts), *wiki_suite(corpus, heldout)]


def wiki_suite(corpus: Artifact, heldout: float) -> list[Exam]:
    """Only the exam on articles."""
    return [Wiki(items=make_exam(corpus, heldout))]


def heldout_texts(corpus: Artifact, heldout: float) -> tuple[str, ...]:
    """Held-out sentences, the first ones of all documents before the later ones."""
    documents = [
        [each for each in document if len(each) >= _LETTERS] for document in heldout_documents(corpus, heldout)
    ]
    longest = max(map(len, documents), default=0)
    ordered = (document[i] for i in range(longest) for document in documents if i < len(document))
    return tuple(islice(ordered, TEXTS))
