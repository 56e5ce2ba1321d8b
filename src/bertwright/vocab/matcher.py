"""WordPiece's greedy longest match (Devlin et al. 2019; Google's tokenization.py), for many words at once.

The vocabulary is a trie in numpy arrays, which many words traverse in lockstep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bertwright.vocab.config import LONGEST_WORD
from bertwright.vocab.entries import CONTINUATION, UNK
from bertwright.vocab.word_table import runs

_IN_NO_WORD = {"\0", "\n", " "}  # these end a word, and its walk through the trie
_WORD, _REST = 0, 1
_FREE = _NONE = -1
_PLACES_PER_NODE = 4  # sparse enough that most rows fit at the first place drawn


class Matcher:
    """Splits BERT's words into pieces; words that cannot be composed, or are longer than `longest_word`, are [UNK]."""

    continuation: NDArray[np.bool_]
    """[V] whether each entry continues a word (##)."""

    def __init__(self, ids: Mapping[str, int], longest_word: int = LONGEST_WORD) -> None:
        self.longest_word = longest_word
        """The most characters of a word that is split."""
        words, rests = dict[str, int](), dict[str, int]()
        for entry, i in ids.items():
            piece = entry.removeprefix(CONTINUATION)
            # An entry with a space would match across two words.
            if len(piece) <= longest_word and _IN_NO_WORD.isdisjoint(piece):
                (rests if entry.startswith(CONTINUATION) else words)[piece] = i
        self._trie, self._unknown = Trie([words, rests]), ids[UNK]
        self.continuation = np.zeros(len(ids), bool)
        self.continuation[[i for entry, i in ids.items() if entry.startswith(CONTINUATION)]] = True

    def __call__(self, lines: str) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The concatenated ids of all lines, and the end of each line among them.

        Words are separated by spaces; each line ends with "\\n".
        """
        text = np.frombuffer(f"\n{lines}".encode("utf-32-le"), "<u4")
        line_ends = text == ord("\n")
        outside = line_ends | (text == ord(" "))
        edges = np.diff(outside.view(np.int8))
        starts, ends = np.flatnonzero(edges == -1) + 1, np.flatnonzero(edges == 1) + 1
        # The rule of Google's tokenizer: a longer word is [UNK], whatever its pieces.
        short = ends - starts <= self.longest_word
        pieces, stuck = self._walk(self._trie.classes(text), outside, starts[short])
        unknown = ~short
        unknown[np.searchsorted(starts, stuck, "right") - 1] = True
        # A word that cannot be completed becomes one [UNK]: pieces already matched in it are removed.
        pieces[runs(starts[unknown], (ends - starts)[unknown])] = _NONE
        pieces[starts[unknown]] = self._unknown
        begins_piece = pieces != _NONE
        return pieces[begins_piece].astype(np.uint32), np.cumsum(begins_piece)[np.flatnonzero(line_ends)[1:]]

    def _walk(
        self, classes: NDArray[np.int32], outside: NDArray[np.bool_], begins: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """For each position in the text, the piece that begins there; and the positions where no piece fits."""
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


class Trie:
    """A prefix trie with several roots, nodes 0, 1, ..., each of which has its own strings and ids.

    The child rows are interleaved in one array (row displacement: Tarjan and Yao 1979, "Storing a sparse table").
    """

    longest: NDArray[np.int32]
    """[nodes] the id of the longest string on the path to the node, or -1."""
    length: NDArray[np.int64]
    """[nodes] the number of characters of that string, or 0."""

    def __init__(self, roots: Sequence[Mapping[str, int]]) -> None:
        """`roots` maps strings to ids for each root; strings must not contain the character 0."""
        ids = {chr(1 + root): _NONE for root in range(len(roots))}
        for root, strings in enumerate(roots):
            ids |= {chr(1 + root) + string: i for string, i in strings.items()}
        # Sorted, so that strings with a common prefix are neighbours and share its nodes.
        marked = sorted(ids)
        letters = np.array(marked).view(np.uint32).reshape(len(marked), -1).T
        differs = np.append(np.ones((len(letters), 1), bool), letters[:, 1:] != letters[:, :-1], axis=1)
        new = (letters > 0) & np.logical_or.accumulate(differs)
        nodes = np.cumsum(new).reshape(new.shape) - 1  # by depth, so the roots come first
        parents, characters = nodes[:-1][new[1:]], letters[1:][new[1:]]
        depths = np.fromiter(map(len, marked), np.int64, len(marked)) - 1
        self.longest, self.length = np.full(new.sum(), _NONE, np.int32), np.zeros(new.sum(), np.int64)
        ends = nodes[depths, np.arange(len(marked))]
        self.longest[ends], self.length[ends] = [ids[string] for string in marked], depths
        self._inherit(parents, new.sum(1))
        used = np.unique(characters)
        self._classes = np.zeros(0x110000, np.int32)
        self._classes[used] = np.arange(1, len(used) + 1)
        self._place(parents, self.classes(characters), len(roots) + np.arange(len(parents)))

    def classes(self, characters: NDArray[np.integer]) -> NDArray[np.int32]:
        """The character classes that `step` takes, for code points of any shape."""
        classes: NDArray[np.int32] = self._classes[characters]
        return classes

    def step(self, nodes: NDArray[np.int32], classes: NDArray[np.int32]) -> NDArray[np.int32]:
        """[N] the child of each of `nodes` [N] for its character class in `classes` [N], or -1."""
        places = self._rows[nodes] + classes
        return np.where(self._parents[places] == nodes, self._children[places], _NONE)

    def _inherit(self, parents: NDArray[np.int64], nodes_at_depth: NDArray[np.int64]) -> None:
        """Nodes where no string ends inherit the longest one from their parents."""
        for begin, end in pairwise(np.cumsum(nodes_at_depth)):
            bare = begin + np.flatnonzero(self.longest[begin:end] == _NONE)
            above = parents[bare - nodes_at_depth[0]]
            self.longest[bare], self.length[bare] = self.longest[above], self.length[above]

    def _place(self, parents: NDArray[np.int64], classes: NDArray[np.int32], children: NDArray[np.int64]) -> None:
        """Find places for the child rows, widest first; the place of a row does not affect any result."""
        width = int(classes.max(initial=0)) + 1
        draw, size = np.random.default_rng(0), _PLACES_PER_NODE * len(self.longest)
        self._parents = np.full(size + width, _FREE, np.int32)
        self._children = np.full(size + width, _FREE, np.int32)
        self._rows = np.zeros(len(self.longest), np.int32)
        fans = np.bincount(parents, minlength=len(self.longest))
        # The widest rows first, while there is most room: a narrow row fits nearly anywhere.
        order = np.lexsort((parents, -fans[parents]))
        for fan in np.unique(fans[parents])[::-1]:
            edges = order[fans[parents[order]] == fan].reshape(-1, fan)
            while len(edges):
                owners, rows = parents[edges], draw.integers(size, size=(len(edges), 1))
                places = rows + classes[edges]
                free = (self._parents[places] == _FREE).all(1)
                self._parents[places[free]] = owners[free]
                taken = self._parents[places] == owners
                placed = taken.all(1)
                # Rows that collide free their places and are drawn again in the next round.
                self._parents[places[~placed][taken[~placed]]] = _FREE
                self._rows[owners[placed, 0]] = rows[placed, 0]
                self._children[places[placed]] = children[edges[placed]]
                edges = edges[~placed]
