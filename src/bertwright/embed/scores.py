"""What vectors are worth on held-out pairs, before and after their training, beside BM25.

Names carry shapes: N texts, H dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from typing_extensions import TypedDict

from bertwright.core.errors import MissingExtraError
from bertwright.core.log import Log
from bertwright.exams.exam import Score, evenly
from bertwright.exams.retrieval import NO_PROMPTS, Encode, RetrievalItems, bm25_scores, score_retrieval, unit
from bertwright.exams.similarity import Likeness, score_similarity
from bertwright.exams.vectors import mean_cosine
from bertwright.vocab.tokenizer import Tokenizer

RAW, CENTRED, TRAINED, STATIC, WORDS = "before", "before, mean subtracted", "trained", "static table", "BM25"
"""The names of the rows."""
_MOST = 2_000
"""Pairs of sentences with scores that are compared, at most."""
_AT_ONCE = 1024


class Row(TypedDict):
    """The scores of one way to find passages, from 0 to 1; None: it gives no such score."""

    name: str
    scores: dict[str, float | None]


class Scorer:
    """Scores vectors on the same items."""

    def __init__(self, items: RetrievalItems, likeness: Sequence[Likeness], log: Log) -> None:
        self._items, self._likeness, self._log = items, evenly(likeness, _MOST), log

    def word_row(self) -> Row | None:
        """The scores of BM25; None without bm25s, which the log then names."""
        try:
            return Row(name=WORDS, scores=_values(bm25_scores(self._items, "")))
        except MissingExtraError as error:
            self._log.say(f"embed: {error}")
            return None

    def rows(
        self,
        name: str,
        encode: Encode,
        dimensions: Sequence[int] = (),
        centred: str = "",
        prompts: Mapping[str, str] = NO_PROMPTS,
    ) -> Iterator[Row]:
        """Yield the scores of vectors, and of their first `dimensions`; with `centred`, the name of another row, also
        of the vectors less the mean of those of the passages. `prompts` as of `Encoder`."""
        self._log.say(f"embed: scoring {name}")
        kept = _Kept(encode)
        passages = [prompts.get("document", "") + passage for passage in self._items.passages]
        yield self._row(name, kept, passages, prompts)
        if centred:
            mean_H = kept(passages).mean(0)
            yield self._row(centred, lambda texts: kept(texts) - mean_H, passages, prompts)
        for size in dimensions:
            yield self._row(f"{name}, first {size}", partial(_first, kept, size), passages, prompts)

    def _row(self, name: str, encode: Encode, passages: Sequence[str], prompts: Mapping[str, str]) -> Row:
        scores = _values(score_retrieval(self._items, encode, "", prompts=prompts))
        if self._likeness:
            scores |= _values(score_similarity(self._likeness, encode, ""))
        return Row(name=name, scores={**scores, "mean cosine": mean_cosine(encode(passages))})


def _first(encode: Encode, size: int, texts: Sequence[str]) -> NDArray[np.float32]:
    return encode(texts)[:, :size]


class _Kept:
    """Computes the vector of each text once."""

    def __init__(self, encode: Encode) -> None:
        self._encode, self._vectors = encode, dict[str, NDArray[np.float32]]()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if new := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors |= zip(new, self._encode(new), strict=True)
        return np.stack([self._vectors[text] for text in texts])


def _values(scores: Iterator[Score]) -> dict[str, float | None]:
    return {score.name: score.value for score in scores}


def static_encoder(folder: Path, tokenizer: Tokenizer) -> Encode:
    """What gives the vectors of a static table, as model2vec: the mean of the rows of a text's word pieces."""
    table_VH = load_file(folder / "model.safetensors")["embeddings"]

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors_NH = np.zeros((len(texts), table_VH.shape[1]), np.float32)
        for first in range(0, len(texts), _AT_ONCE):
            flat, lengths = tokenizer.encode_texts(texts[first : first + _AT_ONCE])
            owner = np.repeat(np.arange(len(lengths)), lengths)
            # The sum has the direction of the mean. [UNK], which model2vec leaves out, has a row of zeros.
            np.add.at(vectors_NH[first : first + _AT_ONCE], owner, table_VH[flat])
        return unit(vectors_NH)

    return encode
