"""WordPiece's greedy longest match (Devlin et al. 2019; Google's tokenization.py), many words at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bertwright.vocab.normalization import CONTINUATION, UNK
from bertwright.vocab.trie import Trie
from bertwright.vocab.word_table import runs

LONGEST_WORD = 100
_IN_NO_WORD = {"\0", "\n", " "}  # these end words, and the walks through the trie
_WORD, _REST = 0, 1
_NONE = -1


class Matcher:
    """The pieces of BERT's words; a word that cannot be put together, or of more than 100 characters, is [UNK]."""

    continuation: NDArray[np.bool_]
    """[V] which entries continue a word (##)."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        words, rests = dict[str, int](), dict[str, int]()
        for entry, i in ids.items():
            piece = entry.removeprefix(CONTINUATION)
            if len(piece) <= LONGEST_WORD and _IN_NO_WORD.isdisjoint(piece):
                (rests if entry.startswith(CONTINUATION) else words)[piece] = i
        self._trie, self._unknown = Trie([words, rests]), ids[UNK]
        self.continuation = np.zeros(len(ids), bool)
        self.continuation[[i for entry, i in ids.items() if entry.startswith(CONTINUATION)]] = True

    def __call__(self, lines: str) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The ids of all lines one after another, and where each line ends; words lie between spaces.

        A "\\n" stands behind each line.
        """
        text = np.frombuffer(f"\n{lines}".encode("utf-32-le"), "<u4")
        line_ends = text == ord("\n")
        outside = line_ends | (text == ord(" "))
        edges = np.diff(outside.view(np.int8))
        starts, ends = np.flatnonzero(edges == -1) + 1, np.flatnonzero(edges == 1) + 1
        short = ends - starts <= LONGEST_WORD
        pieces, stuck = self._walk(self._trie.classes(text), outside, starts[short])
        unknown = ~short
        unknown[np.searchsorted(starts, stuck, "right") - 1] = True
        pieces[runs(starts[unknown], (ends - starts)[unknown])] = _NONE
        pieces[starts[unknown]] = self._unknown
        there = pieces != _NONE
        return pieces[there].astype(np.uint32), np.cumsum(there)[np.flatnonzero(line_ends)[1:]]

    def _walk(
        self, classes: NDArray[np.int32], outside: NDArray[np.bool_], begins: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """For each place in the text the piece that begins there; and the places where no piece fits."""
        trie, pieces, stuck = self._trie, np.full(len(classes), _NONE, np.int32), [begins[:0]]
        at, nodes = begins.copy(), np.full(len(begins), _WORD, np.int32)
        while len(begins):
            further = trie.step(nodes, classes[at])
            at += 1
            if len(over := np.flatnonzero(further == _NONE)):
                lengths = trie.length[nodes[over]]
                pieces[begins[over]] = trie.longest[nodes[over]]
                stuck.append(begins[over[lengths == 0]])
                begins[over] = at[over] = begins[over] + lengths
                further[over] = _REST
                walking = np.ones(len(begins), bool)
                walking[over] = ~outside[begins[over]] & (lengths > 0)
                begins, at, further = begins[walking], at[walking], further[walking]
            nodes = further
        return pieces, np.concatenate(stuck)
