"""Converts sentences to exact BERT ids, fast: every distinct word of `pretokenize` is tokenised once.

NFC, BERT's normalisation and splitting, and WordPiece do not look beyond the end of such a word, so caching by word
does not change the result. Special tokens are not recognised in running text: an article that quotes "[MASK]" gets
`[`, `MASK`, `]`, as in the original BasicTokenizer, never the mask token. In labelled texts and in those that an
exported model is compared on, they are recognised, because transformers recognises them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as FastTokenizer

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError, memory_error
from bertwright.vocab.entries import CONTINUATION, SPECIALS
from bertwright.vocab.matcher import Matcher
from bertwright.vocab.split import WordSplitter
from bertwright.vocab.word_table import WordTable, lines_of, pretokenize, runs, text_of

CACHED_WORDS = 1 << 20
_BYTES_PER_WORD = 32  # at most, on average; the words of Hungarian novels take 15
_SPECIAL = re.compile(f"({'|'.join(map(re.escape, SPECIALS))})")


class Tokenizer:
    """WordPiece ids of sentences, with a word cache.

    The cache is cleared before a call if it holds more than `cached_words` words (about 100 bytes each), or more bytes
    than that many words of 32 bytes: in Chinese or Thai a word is the text between two punctuation marks.
    """

    vocabulary: list[str]
    """The entries, by id."""
    continuation: NDArray[np.bool_]
    """[V] whether each entry continues a word (##)."""
    fast: FastTokenizer
    """The library's tokenizer, which knows the characters of each token."""

    def __init__(self, fast: FastTokenizer, cached_words: int = CACHED_WORDS) -> None:
        self.fast = fast
        self._ids = fast.get_vocab(with_added_tokens=True)
        self.vocabulary = sorted(self._ids, key=self._ids.__getitem__)
        self._splitter = WordSplitter(fast.normalizer, fast.pre_tokenizer)
        self._matcher = Matcher(self._ids, fast.model.max_input_chars_per_word)
        self.continuation = self._matcher.continuation
        self._limit = cached_words
        self._forget()

    def encode_sentences(self, sentences: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """[T] the concatenated ids, and [S] the number of ids of each sentence; without [CLS] and [SEP]."""
        if max(len(self._words), self._words.size / _BYTES_PER_WORD) > self._limit:
            self._forget()
        text = text_of(sentences)
        starts, ends = pretokenize(text)
        numbers, new = self._words.numbers(text, starts, ends)
        if len(new):
            self._learn(lines_of(text, starts[new], ends[new]))
        begins, counts = (np.frombuffer(column, np.int64)[numbers] for column in (self._begins, self._counts))
        # Line feeds are not words: the words before one are those of its sentence and all earlier ones.
        sentence_ends = np.searchsorted(starts, np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")))
        lengths = np.diff(np.append(0, np.cumsum(counts))[sentence_ends], prepend=0)
        return np.frombuffer(self._pieces, np.uint32)[runs(begins, counts)], lengths

    def encode_texts(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """[T] the concatenated ids, and [N] the number of ids of each text; without [CLS] and [SEP] around it.

        "[SEP]" and the other special entries in a text are those entries, as they are for the tokenizers of
        transformers: a model gets the same ids here and after its export.
        """
        # Each text is a list of running text, special entry, running text, ..., running text.
        parts = [_SPECIAL.split(text) for text in texts]
        flat, lengths = self.encode_sentences([part for text in parts for part in text[::2]])
        specials = np.array([self.ids(part) for text in parts for part in text[1::2]], np.uint32)
        followed = np.array([i + 2 < len(text) for text in parts for i in range(0, len(text), 2)], np.bool_)
        first = np.cumsum([0, *(len(text[::2]) for text in parts)])
        ends = np.append(0, np.cumsum(lengths + followed))
        return np.insert(flat, np.cumsum(lengths)[followed], specials), np.diff(ends[first])

    def ids(self, entry: str) -> int:
        """The id of an entry such as "[MASK]"; `ArtifactError` if there is none."""
        try:
            return self._ids[entry]
        except KeyError:
            special = ", ".join(SPECIALS)
            raise ArtifactError(f"the vocabulary has no entry {entry!r}; its special entries are {special}.") from None

    def decode(self, ids: Sequence[int] | NDArray[np.integer]) -> str:
        """Readable text for ids [T], with pieces joined and special tokens kept."""
        words: list[str] = []
        for i in ids:
            entry = self.vocabulary[int(i)]
            if entry.startswith(CONTINUATION) and words:
                words[-1] += entry.removeprefix(CONTINUATION)
            else:
                words.append(entry)
        return " ".join(words)

    def _learn(self, words: str) -> None:
        pieces, ends = self._matcher(self._splitter.lines(words))
        counts = np.diff(ends, prepend=0)
        self._begins.frombytes((len(self._pieces) + ends - counts).tobytes())
        self._counts.frombytes(counts.tobytes())
        self._pieces.frombytes(pieces.tobytes())

    def _forget(self) -> None:
        # Cleared completely: evicting single words would require tracking every use.
        self._words = WordTable()
        self._begins, self._counts, self._pieces = array("q"), array("q"), array("I")


def load_tokenizer(vocab: Artifact | Path) -> Tokenizer:
    """The tokenizer of a vocabulary artifact, or of its folder."""
    artifact = vocab if isinstance(vocab, Artifact) else open_artifact(vocab, "vocab")
    return read_tokenizer(artifact.file("tokenizer.json"))


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a `tokenizer.json`; `ArtifactError` if it cannot be read."""
    try:
        return Tokenizer(FastTokenizer.from_file(str(path)))
    except Exception as error:  # the library raises nothing more specific
        if lacking := memory_error(error):
            raise lacking from error
        raise ArtifactError(f"cannot read {path}: {error}. Restore it, or run the stage vocab again.") from error
