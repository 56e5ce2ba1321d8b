"""Adds entries for a text to a finished vocabulary, whose own entries keep their ids.

Only words that the finished vocabulary splits badly are learned from, with the WordPiece trainer. Of the pieces that it
finds, those are kept that save the most tokens of the text: an intermediate merge that no word ends up with saves none
(as in AVocaDo, Hong et al. 2021, and exBERT, Tai et al. 2020, a network keeps what it knows of all other text).
Characters of the text that the vocabulary lacks come first, because a word with one of them is [UNK].

They follow the finished entries, or first take the places of its unused ones, [unused0] and so on, of which the
published BERT vocabularies have about a thousand: then a network need not grow.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bertwright.core.errors import RecipeError
from bertwright.vocab.config import VocabConfig, WordPieceConfig
from bertwright.vocab.correspondence import correspond
from bertwright.vocab.entries import CONTINUATION, UNK, TextSettings
from bertwright.vocab.matcher import Matcher
from bertwright.vocab.trainers import missing_characters, train_wordpiece

BAD = 3
"""Pieces of a word that is split badly, at least."""
_MORE = 2
"""How many times as many pieces are learned as there is room for, to choose from."""
_SHOWN = 20
_UNUSED = re.compile(r"\[unused\d+\]")


class Extended(NamedTuple):
    """An extended vocabulary."""

    entries: list[str]
    """All entries, by id."""
    report: dict[str, Any]
    """What was added, and how the finished vocabulary alone would tokenise the text."""


def room_of(config: VocabConfig, older: Sequence[str]) -> int:
    """How many entries can be added to the finished ones. Raises `RecipeError` if none can."""
    unused = sum(map(is_unused, older)) if config.fill_unused else 0
    if (room := (config.size or 0) - len(older) + unused) < 1:
        fill = "" if config.fill_unused or not any(map(is_unused, older)) else ", or set vocab.fill_unused=true"
        raise RecipeError(
            f"vocab.size={config.size:,} has no room for entries beside the {len(older):,} of vocab.extend "
            f"{config.extend}; raise vocab.size above that{fill}"
        )
    return room


def is_unused(entry: str) -> bool:
    """Whether an entry is reserved for later use."""
    return _UNUSED.fullmatch(entry) is not None


def extend(config: VocabConfig, older: list[str], words: Counter[str]) -> Extended:
    """Return the entries of `older` with those added that the text with these `words` needs, at most `config.size`."""
    room = room_of(config, older)
    characters = missing_characters(config, older, words)[:room]
    known = [*older, *characters]
    tokens, unknown = _pieces(known, config, list(words))
    split = zip(words.items(), tokens, unknown, strict=True)
    badly = Counter({word: count for (word, count), n, is_unknown in split if n >= BAD or is_unknown})
    chosen = _most_useful(known, _learned(config, room, badly), badly, config)
    added = [*characters, *chosen[: room - len(characters)]]
    entries = _placed(older, added, config.fill_unused)
    before, lost = _pieces(older, config, list(words))
    count = np.fromiter(words.values(), np.int64, len(words))
    total = max(1, int(count.sum()))
    return Extended(
        entries,
        {
            "older": len(older),
            "added": len(added),
            "in_unused": len(older) + len(added) - len(entries),
            "characters": len(characters),
            "badly_split_words": sum(badly.values()),
            "older_fertility": round(float(before @ count) / total, 4),
            "older_unknown_rate": round(float(count[lost].sum()) / total, 6),
            "examples": chosen[:_SHOWN],
        },
    )


def _learned(config: VocabConfig, room: int, words: Counter[str]) -> list[str]:
    """Return pieces of more than one character that the trainer finds in these words, commonest first."""
    trainer = config.trainer
    assert isinstance(trainer, WordPieceConfig)
    if not words:
        return []
    # The characters of the words are entries too, and all of them: which ones are kept is decided elsewhere.
    size = 2 * len(set("".join(words))) + _MORE * room + 100
    entries = train_wordpiece(config.model_copy(update={"size": size, "alphabet_coverage": 1.0}), trainer, words)
    return [entry for entry in entries if len(entry.removeprefix(CONTINUATION)) > 1 and not _bracketed(entry)]


def _bracketed(entry: str) -> bool:
    return entry.startswith("[") and entry.endswith("]")


def _most_useful(known: list[str], learned: list[str], words: Counter[str], config: VocabConfig) -> list[str]:
    """Return the learned entries that are not known and save tokens of these words, by how many they save."""
    ids = {entry: i for i, entry in enumerate(known)}
    new = [entry for entry in learned if entry not in ids]
    if not new:
        return []
    match = Matcher({entry: i for i, entry in enumerate([*known, *new])}, config.longest_word)
    pieces, ends = match("".join(f"{word}\n" for word in words))
    occurrences = np.repeat(np.fromiter(words.values(), np.int64, len(words)), np.diff(ends, prepend=0))
    uses = np.bincount(pieces, occurrences, len(known) + len(new))[len(known) :]
    settings = TextSettings.of(config)
    # An entry of which nothing is known saves a word from being [UNK].
    saved = uses * np.maximum(correspond(new, known, settings, settings, {}).counts_V - 1, 0)
    # Stable, so that entries that save as much stay in the order in which they were learned.
    order = np.argsort(-saved, kind="stable")
    return [new[i] for i in order.tolist() if saved[i] > 0]


def _placed(older: list[str], added: Sequence[str], fill_unused: bool) -> list[str]:
    """Return the older entries in their places, with the others in the places of unused ones and after them."""
    entries, rest = list(older), iter(added)
    for i in [i for i, entry in enumerate(older) if is_unused(entry)] if fill_unused else []:
        entries[i] = next(rest, entries[i])
    return [*entries, *rest]


def _pieces(
    entries: list[str], config: VocabConfig, words: list[str]
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[bool]]:
    """Return the number of pieces of each word, and whether it is unknown."""
    match = Matcher({entry: i for i, entry in enumerate(entries)}, config.longest_word)
    pieces, ends = match("".join(f"{word}\n" for word in words))
    counts = np.diff(ends, prepend=0)
    return counts, (pieces[ends - counts] == entries.index(UNK)).tolist()
