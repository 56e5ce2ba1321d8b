"""BM25, the ranking by words in common that vectors must beat: as of Lucene, by the package bm25s.

Words are cut in the same way for every language: runs of letters and digits in lower case, and in scripts without
spaces between words pairs of neighbouring letters, as Lucene's CJK analyzer does. There is no stemming and no list of
stop words, which would be other ones in each language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import regex
from numpy.typing import NDArray

from bertwright.core.errors import MissingExtraError
from bertwright.corpus.words import has_unspaced

K1, B = 1.5, 0.75
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*")


def words_of(text: str) -> list[str]:
    """The words of a text by which it is ranked."""
    return list(_words(text.casefold()))


def _words(text: str) -> Iterator[str]:
    unspaced = has_unspaced(text)
    for match in _WORD.finditer(text):
        word = match[0]
        if unspaced and len(word) > 1 and has_unspaced(word):
            yield from (word[i : i + 2] for i in range(len(word) - 1))
        else:
            yield word


def bm25(queries: Sequence[str], passages: Sequence[str]) -> Iterator[NDArray[np.float32]]:
    """Yield for each query the score of each passage [P]; raises `MissingExtraError` without bm25s."""
    try:
        import bm25s
    except ImportError as error:
        raise MissingExtraError("BM25 is computed by bm25s, which is not installed: pip install bm25s.") from error
    index = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index([words_of(passage) for passage in passages], show_progress=False)
    for query in queries:
        known = [word for word in words_of(query) if word in index.vocab_dict]
        # Without a known word all scores are 0; the package warns about it.
        yield index.get_scores(known) if known else np.zeros(len(passages), np.float32)
