"""Sentences to exact BERT ids, fast: every distinct space-separated word is tokenised once.

Neither NFC, BERT's normalisation, its splitting, nor WordPiece looks across a space, so caching by word changes
nothing. Special tokens are not recognised in running text: an article that quotes "[MASK]" gets
`[`, `MASK`, `]`, as in the original BasicTokenizer, never the mask itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.vocab.match import Matcher
from bertwright.vocab.normal import CONTINUATION, SPECIALS
from bertwright.vocab.split import WordSplitter
from bertwright.vocab.words import PADDING, WordTable, runs

CACHED_WORDS = 1 << 20
_END = ord("\n")
_ALONE = "".join(chr(c) for c in range(33, 127) if not chr(c).isalnum() and chr(c) not in "<=>")
_APART = "”»…„«“’"
_KINDS = bytes(0 if c == 32 else 2 if c == _END or chr(c) in _ALONE else 1 for c in range(256))


class Tokenizer:
    """WordPiece ids of sentences through a word cache.

    The cache is emptied before a call when it holds more than `cached_words` words (about 200 bytes each).
    """

    vocabulary: list[str]
    """The entries, by id."""
    continuation: NDArray[np.bool_]
    """[V] which entries continue a word (##)."""

    def __init__(self, fast: FastTokenizer, cached_words: int = CACHED_WORDS) -> None:
        self._ids = fast.get_vocab(with_added_tokens=True)
        self.vocabulary = sorted(self._ids, key=self._ids.__getitem__)
        self._splitter = WordSplitter(fast.normalizer, fast.pre_tokenizer)
        self._match = Matcher(self._ids)
        self.continuation = self._match.continuation
        self._limit = cached_words
        self._forget()

    def encode_sentences(self, sentences: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """All ids one after another, and the number of ids of each sentence; no [CLS] or [SEP]."""
        if len(self._words) > self._limit:
            self._forget()
        text = _text(sentences)
        starts, ends = _cut(text)
        numbers, new = self._words.numbers(text, starts, ends)
        if new:
            self._learn(b" ".join(new).decode().split(" "))
        begins, counts = (np.frombuffer(column, np.int64)[numbers] for column in (self._begins, self._counts))
        behind = np.cumsum(counts)[np.frombuffer(text, np.uint8)[starts] == _END]
        return np.frombuffer(self._pieces, np.uint32)[runs(begins, counts)], np.diff(behind, prepend=0)

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
        pieces, ends = self._match(self._splitter.lines(words))
        counts = np.diff(ends, prepend=0)
        self._begins.frombytes((len(self._pieces) + ends - counts).tobytes())
        self._counts.frombytes(counts.tobytes())
        self._pieces.frombytes(pieces.tobytes())

    def _forget(self) -> None:
        self._words = WordTable()
        self._begins, self._counts, self._pieces = array("q"), array("q"), array("I")


def load_tokenizer(vocab: Artifact | Path) -> Tokenizer:
    """The tokenizer of a vocabulary artifact, or of the folder it lies in."""
    artifact = vocab if isinstance(vocab, Artifact) else open_artifact(vocab, "vocab")
    return Tokenizer(FastTokenizer.from_file(str(artifact.file("tokenizer.json"))))


def _text(sentences: Sequence[str]) -> bytes:
    """The sentences as one text, an `_END` after each, with spaces around."""
    text = "\n".join([*sentences, ""])
    if text.count("\n") > len(sentences):
        return _text([sentence.replace("\n", " ") for sentence in sentences])
    for mark in _APART:
        text = text.replace(mark, f" {mark} ")
    return f" {text}{' ' * PADDING}".encode()


def _cut(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where words start and end: what lies between spaces, each ASCII punctuation mark and each `_END` a word alone."""
    kinds = np.frombuffer(text.translate(_KINDS), np.int8)
    edges, alone = np.diff(kinds & 1), kinds == 2
    return np.flatnonzero((edges == 1) | alone[1:]) + 1, np.flatnonzero((edges == -1) | alone[:-1]) + 1
