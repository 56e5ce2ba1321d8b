"""Finds the entries of a vocabulary that a text needs, so that the others can be removed.

WordPiece takes the longest entry that fits (Devlin et al. 2019). Where the kept entries contain every piece of the
text, its pieces stay the same: the longest match among all entries is kept, and a longer one among fewer entries cannot
exist. A word that cannot be composed is [UNK], although its first pieces were found. With some of those gone it would
be walked in another way and might be composed after all, so that the pieces found in unknown words are kept, too.

Beside them stay the special entries and all single characters of the scripts that occur, so that most words of other
texts can still be composed. Names carry shapes: V vocabulary, K kept entries, W words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import RecipeError
from bertwright.vocab.entries import CONTINUATION, SPECIALS, UNK, TextSettings
from bertwright.vocab.matcher import Matcher
from bertwright.vocab.report import SHOWN_SHARE, script
from bertwright.vocab.split import bert_splitter, count_words
from bertwright.vocab.word_table import runs

HELDOUT_EVERY = 50
"""One line of so many is held out to see what other texts of this kind would lose."""
_HELDOUT_CHARACTERS = 10_000_000
"""Characters of held-out lines whose words are remembered at most; later lines are all counted."""
_CHUNK_CHARACTERS = 16_000_000
"""Characters whose distinct words are in memory at once."""
_ALWAYS = ("digits", "other marks")
"""What `report.script` calls words without letters: numbers and punctuation occur in texts of any script."""


class Kept(TypedDict):
    """What keeping some entries means for the texts."""

    entries_before: int
    entries_after: int
    used: int
    """Entries that are pieces of the texts."""
    tokens: int
    unknown_tokens: int
    """Those that are [UNK]."""
    changed_tokens: int
    """Tokens of the texts whose entry is gone."""
    heldout_words: int
    heldout_changed_words: int
    """Held-out words that get other pieces from the entries that all other lines need."""
    scripts: list[str]
    """Scripts whose single characters are kept."""


@dataclass
class Usage:
    """How often a text uses each entry."""

    pieces_V: NDArray[np.int64]
    """[V] tokens of the text that are this entry; [UNK] included."""
    walked_V: NDArray[np.int64]
    """[V] how often it was found in words that are [UNK] in the end."""
    scripts: Counter[str] = field(default_factory=Counter)
    """Words by script (`report.script`)."""

    @classmethod
    def none(cls, entries: int) -> Usage:
        """Of no text."""
        return cls(np.zeros(entries, np.int64), np.zeros(entries, np.int64))

    def __add__(self, other: Usage) -> Usage:
        pieces_V, walked_V = self.pieces_V + other.pieces_V, self.walked_V + other.walked_V
        return Usage(pieces_V, walked_V, self.scripts + other.scripts)


class UsageCounter:
    """Counts entries in text of any size, in memory that does not grow with it."""

    def __init__(self, entries: Sequence[str], settings: TextSettings) -> None:
        self._entries, self._ids = entries, {entry: i for i, entry in enumerate(entries)}
        self._matcher, self._splitter = Matcher(self._ids, settings.longest_word), bert_splitter(*settings[:2])
        self.learned, self.heldout = Usage.none(len(entries)), Usage.none(len(entries))
        self.heldout_words: Counter[str] = Counter()
        """How often each word occurs in the held-out lines."""

    def read(self, lines: Iterable[str]) -> None:
        """Count the words of `lines`, those of every `HELDOUT_EVERY`th line as held out."""
        for chunk in _chunks(lines):
            # The beginning of a book is not held out alone: every so many lines.
            kept, held = [line for i, line in enumerate(chunk) if i % HELDOUT_EVERY], chunk[::HELDOUT_EVERY]
            if sum(map(len, self.heldout_words)) > _HELDOUT_CHARACTERS:
                kept, held = chunk, []
            self.learned += self._usage(count_words(kept, self._splitter))
            words = count_words(held, self._splitter)
            self.heldout += self._usage(words)
            self.heldout_words.update(words)

    def _usage(self, words: Mapping[str, int]) -> Usage:
        occurs_W = np.fromiter(words.values(), np.int64, len(words))
        pieces, ends_W = self._matcher("".join(f"{word}\n" for word in words))
        tokens_W = np.diff(ends_W, prepend=0)
        found = Usage.none(len(self._entries))
        found.pieces_V += np.bincount(pieces, np.repeat(occurs_W, tokens_W), len(self._entries)).astype(np.int64)
        unknown_W = (tokens_W == 1) & (pieces[ends_W - tokens_W] == self._ids[UNK]) if len(words) else np.zeros(0, bool)
        for word, count in words.items():
            found.scripts[script(word)] += count
        listed = list(words)
        for place in np.flatnonzero(unknown_W).tolist():
            for entry in _walk(listed[place], self._ids, self._matcher.longest_word):
                found.walked_V[entry] += occurs_W[place]
        return found

    def kept(self, most: int | None = None) -> NDArray[np.int64]:
        """[K] the ids of the entries to keep for all lines, ascending, at most `most` of them."""
        return keep(self._entries, self.learned + self.heldout, most)

    def report(self, kept: NDArray[np.int64], most: int | None = None) -> Kept:
        """What keeping the ids `kept` [K] means for the lines, and what held-out ones would lose if they were not
        known."""
        usage = self.learned + self.heldout
        gone_V = np.ones(len(self._entries), bool)
        gone_V[kept] = False
        # As if the held-out lines were not known.
        blind = keep(self._entries, self.learned, most)
        words, changed = self._changed(blind)
        return {
            "entries_before": len(self._entries),
            "entries_after": len(kept),
            "used": int(np.count_nonzero(usage.pieces_V)),
            "tokens": int(usage.pieces_V.sum()),
            "unknown_tokens": int(usage.pieces_V[self._ids[UNK]]),
            "changed_tokens": int(usage.pieces_V[gone_V].sum()),
            "heldout_words": words,
            "heldout_changed_words": changed,
            "scripts": sorted(_occurring(usage.scripts) - {*_ALWAYS}),
        }

    def _changed(self, kept: NDArray[np.int64]) -> tuple[int, int]:
        """How many words the held-out lines have, and how many of them get other pieces from the entries `kept`."""
        words = self.heldout_words
        occurs_W = np.fromiter(words.values(), np.int64, len(words))
        if not len(words):
            return 0, 0
        lines = "".join(f"{word}\n" for word in words)
        before, ends_W = self._matcher(lines)
        fewer = Matcher({self._entries[old]: new for new, old in enumerate(kept.tolist())}, self._matcher.longest_word)
        after, new_ends_W = fewer(lines)
        counts_W, new_counts_W = np.diff(ends_W, prepend=0), np.diff(new_ends_W, prepend=0)
        same_W = counts_W == new_counts_W
        sizes = counts_W[same_W]
        old = before[runs((ends_W - counts_W)[same_W], sizes)]
        new = kept[after[runs((new_ends_W - new_counts_W)[same_W], sizes)]]
        if len(sizes):
            same_W[same_W] = np.logical_and.reduceat(old == new, np.cumsum(sizes) - sizes)
        return int(occurs_W.sum()), int(occurs_W[~same_W].sum())


def keep(entries: Sequence[str], usage: Usage, most: int | None = None) -> NDArray[np.int64]:
    """[K] the ids of the entries that a text with this usage needs, ascending: see above.

    With `most`, the rarest are left out; `RecipeError` if it has no room for the special entries and the characters.
    """
    scripts = _occurring(usage.scripts)
    always = np.array([_stays(entry, scripts) for entry in entries], bool)
    uses_V = usage.pieces_V + usage.walked_V
    if most is not None and most < (least := int(always.sum())):
        raise RecipeError(
            f"--entries {most:,} has no room for the special entries and the single characters of "
            f"{', '.join(sorted(scripts - {*_ALWAYS})) or 'the texts'}, which are {least:,}. Give at least {least:,}."
        )
    kept_V = always | (uses_V > 0)
    if most is not None and kept_V.sum() > most:
        # Stable, so that of equally frequent entries the first ones stay.
        order = np.argsort(-np.where(always, np.iinfo(np.int64).max, uses_V), kind="stable")
        kept_V = np.zeros(len(entries), bool)
        kept_V[order[:most]] = True
    return np.flatnonzero(kept_V).astype(np.int64)


def _stays(entry: str, scripts: set[str]) -> bool:
    piece = entry.removeprefix(CONTINUATION)
    return entry in SPECIALS or (len(piece) == 1 and script(piece) in scripts)


def _occurring(scripts: Mapping[str, int]) -> set[str]:
    """The scripts of at least one word in 10,000: a name in another script does not bring all of its characters."""
    total = sum(scripts.values())
    return {*_ALWAYS, *(name for name, count in scripts.items() if count >= SHOWN_SHARE * total)}


def _walk(word: str, ids: Mapping[str, int], longest: int) -> Iterator[int]:
    """Yield the pieces that the longest match finds in an unknown word before it finds none."""
    start = 0
    while start < len(word) <= longest:
        mark = CONTINUATION if start else ""
        fits = (end for end in range(len(word), start, -1) if mark + word[start:end] in ids)
        if (end := next(fits, 0)) == 0:
            return
        yield ids[mark + word[start:end]]
        start = end


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    chunk, size = list[str](), 0
    for line in lines:
        chunk.append(line)
        size += len(line)
        if size > _CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
