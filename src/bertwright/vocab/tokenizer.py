"""Sentences to exact BERT ids, fast: every distinct space-separated word is tokenised once.

Neither NFC, BERT's normalisation, its splitting, nor WordPiece looks across a space, so caching by word changes
nothing. Special tokens are not recognised in running text: an article that quotes "[MASK]" gets
`[`, `MASK`, `]`, as in the original BasicTokenizer, never the mask itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.vocab.normal import CONTINUATION, SPECIALS

CACHED_WORDS = 1 << 19


class Tokenizer:
    """WordPiece ids of sentences through a word cache of at most `cached_words` entries (about 100 bytes each)."""

    vocabulary: list[str]
    """The entries, by id."""
    continuation: NDArray[np.bool_]
    """[V] which entries continue a word (##)."""
    _number: dict[str, int]
    _starts: NDArray[np.int64]
    _counts: NDArray[np.int64]
    _pieces: NDArray[np.uint32]

    def __init__(self, fast: FastTokenizer, cached_words: int = CACHED_WORDS) -> None:
        ids = fast.get_vocab(with_added_tokens=True)
        self.vocabulary = sorted(ids, key=ids.__getitem__)
        self.continuation = np.array([entry.startswith(CONTINUATION) for entry in self.vocabulary])
        self._ids = ids
        self._fast = _without_special_tokens(fast)
        self._limit = cached_words
        self._forget()

    def encode_sentences(self, sentences: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """All ids one after another, and the number of ids of each sentence; no [CLS] or [SEP]."""
        split = [sentence.split(" ") for sentence in sentences]
        words = [word for sentence in split for word in sentence]
        self._learn(words)
        numbers = np.fromiter(map(self._number.__getitem__, words), np.int64, len(words))
        counts = self._counts[numbers]
        ends = np.cumsum(counts)
        source = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self._starts[numbers] - (ends - counts), counts)
        sentence_ends = np.cumsum([len(sentence) for sentence in split], dtype=np.int64)
        token_ends = np.concatenate([[0], ends])[np.concatenate([[0], sentence_ends]).astype(np.int64)]
        return self._pieces[source], np.diff(token_ends)

    def ids(self, entry: str) -> int:
        """The id of an entry such as "[MASK]"."""
        try:
            return self._ids[entry]
        except KeyError:
            special = ", ".join(SPECIALS)
            raise ArtifactError(f"the vocabulary has no entry {entry!r}; its special entries are {special}.") from None

    def decode(self, ids: Sequence[int] | NDArray[np.integer]) -> str:
        """Readable text: pieces joined, special tokens kept."""
        words: list[str] = []
        for i in ids:
            entry = self.vocabulary[int(i)]
            if entry.startswith(CONTINUATION) and words:
                words[-1] += entry.removeprefix(CONTINUATION)
            else:
                words.append(entry)
        return " ".join(words)

    def _learn(self, words: list[str]) -> None:
        distinct = dict.fromkeys(words)
        new = [word for word in distinct if word not in self._number]
        if len(self._number) + len(new) > self._limit:
            self._forget()
            new = list(distinct)
        if not new:
            return
        pieces = [encoding.ids for encoding in self._fast.encode_batch_fast(new, add_special_tokens=False)]
        counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
        first = len(self._number)
        self._number.update(zip(new, range(first, first + len(new)), strict=True))
        self._starts = np.concatenate([self._starts, len(self._pieces) + np.cumsum(counts) - counts])
        self._counts = np.concatenate([self._counts, counts])
        flat = np.fromiter((i for ids in pieces for i in ids), np.uint32, int(counts.sum()))
        self._pieces = np.concatenate([self._pieces, flat])

    def _forget(self) -> None:
        self._number = {}
        self._starts = self._counts = np.zeros(0, np.int64)
        self._pieces = np.zeros(0, np.uint32)


def load_tokenizer(vocab: Artifact | Path) -> Tokenizer:
    """The tokenizer of a vocabulary artifact, or of the folder it lies in."""
    artifact = vocab if isinstance(vocab, Artifact) else open_artifact(vocab, "vocab")
    return Tokenizer(FastTokenizer.from_file(str(artifact.file("tokenizer.json"))))


def _without_special_tokens(fast: FastTokenizer) -> FastTokenizer:
    description = json.loads(fast.to_str())
    description["added_tokens"] = []
    description["post_processor"] = None
    return FastTokenizer.from_str(json.dumps(description))
