"""Finds what the entries of a vocabulary are in an older one: the same entry, or pieces that its text is split into.

An entry is the same if it is written alike and the older tokenizer can match it. A special entry has a role, and is the
same as the one with that role, however that is written. Any other entry is new. It consists of those older entries that
stand for its text: of "Budapest" in a vocabulary of lower-case letters, "budapest"; of "budapest" in one that
distinguishes case, "Budapest"; and otherwise of the pieces that the older tokenizer splits it into (Gee et al. 2022), a
##entry as the rest of a word. Characters that the older vocabulary lacks are left out. Does not import torch.

Names carry shapes: V entries of the new vocabulary, N pieces of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertwright.vocab.entries import CLS, CONTINUATION, MASK, PAD, SEP, SPECIALS, UNK, TextSettings
from bertwright.vocab.load import unreachable
from bertwright.vocab.matcher import Matcher
from bertwright.vocab.split import bert_splitter

NEW = -1
"""Stands for an entry that the older vocabulary does not have."""
_WRITTEN: Mapping[str, tuple[str, ...]] = {
    PAD: (PAD, "<pad>"),
    UNK: (UNK, "<unk>"),
    CLS: (CLS, "<s>", "<cls>"),
    SEP: (SEP, "</s>", "<sep>"),
    MASK: (MASK, "<mask>"),
}
"""How special entries are written, likeliest first."""


@dataclass(frozen=True)
class Correspondence:
    """What each entry of a vocabulary is in an older one."""

    same_V: NDArray[np.int64]
    """[V] the id of the same entry in the older vocabulary; `NEW` if it has none."""
    pieces_N: NDArray[np.int64]
    """[N] the older entries that the new ones consist of, those of one entry after those of another."""
    counts_V: NDArray[np.int64]
    """[V] how many of them belong to each entry; 0 for an entry that is the same, or of which nothing is known."""
    older: int
    """How many entries the older vocabulary has."""

    @property
    def new_V(self) -> NDArray[np.bool_]:
        """[V] whether each entry is new."""
        new_V: NDArray[np.bool_] = self.same_V == NEW
        return new_V

    @property
    def numbers(self) -> tuple[int, int, int]:
        """How many entries are the same, consist of older ones, and have nothing in common with the older ones."""
        same, known = np.count_nonzero(self.same_V != NEW), np.count_nonzero(self.counts_V)
        return int(same), int(known), int(len(self.same_V) - same - known)

    @property
    def note(self) -> str:
        """The numbers, in words."""
        same, composed, unknown = self.numbers
        return (
            f"of {len(self.same_V):,} entries {same:,} are copied, {composed:,} composed of older pieces, and "
            f"{unknown:,} near the mean of all"
        )


def correspond(
    entries: Sequence[str],
    older: Sequence[str],
    settings: TextSettings,
    older_settings: TextSettings,
    roles: Mapping[str, str],
) -> Correspondence:
    """Return what `entries` are in a vocabulary of `older` entries, each with its text settings. `roles` says how the
    older vocabulary writes special entries, where that is known (`entries.special_names`)."""
    ids = {entry: i for i, entry in enumerate(older)}
    special = special_ids(ids, roles)
    in_text = {entry: i for entry, i in ids.items() if not is_bracketed(entry) and i not in special.values()}
    lost = set(unreachable([entry for entry in entries if entry in in_text], *older_settings[:2]))
    same = [
        special[entry]
        if entry in special
        else ids.get(entry, NEW)
        if entry.removeprefix(CONTINUATION) not in lost
        else NEW
        for entry in entries
    ]
    unknown = [i for i, there in enumerate(same) if there == NEW and not is_bracketed(entries[i])]
    pieces = dict[int, Sequence[int]]()
    if settings[:2] != older_settings[:2]:
        variants = _variants(in_text, settings, set(unreachable(list(in_text), *older_settings[:2])))
        pieces = {i: variants[entries[i]] for i in unknown if entries[i] in variants}
        unknown = [i for i in unknown if i not in pieces]
    for continues in (False, True):
        chosen = [i for i in unknown if entries[i].startswith(CONTINUATION) is continues]
        texts = [entries[i].removeprefix(CONTINUATION) for i in chosen]
        pieces |= zip(chosen, _split(texts, in_text, older_settings, continues), strict=True)
    parts = [pieces.get(i, ()) for i in range(len(entries))]
    return Correspondence(
        np.array(same, np.int64),
        np.array([piece for own in parts for piece in own], np.int64),
        np.array([len(own) for own in parts], np.int64),
        len(older),
    )


def is_bracketed(entry: str) -> bool:
    """Whether an entry is special or unused, so that it occurs in no text."""
    return len(entry) > 2 and (entry[0], entry[-1]) in (("[", "]"), ("<", ">"))


def special_ids(ids: Mapping[str, int], roles: Mapping[str, str]) -> dict[str, int]:
    """Return the id of each special entry in a vocabulary with these `ids`, by how it is written here; `NEW` if it has
    none. `roles` is as for `correspond`."""
    written = {role: (roles.get(role, role), *_WRITTEN[role]) for role in SPECIALS}
    return {role: next((ids[name] for name in names if name in ids), NEW) for role, names in written.items()}


def _variants(in_text: Mapping[str, int], settings: TextSettings, lost: set[str]) -> dict[str, list[int]]:
    """Return the older entries that these text settings turn into another one, by what they become."""
    found = dict[str, list[int]]()
    entries = [entry for entry in in_text if entry.removeprefix(CONTINUATION) not in lost]
    lines = _normal([entry.removeprefix(CONTINUATION) for entry in entries], settings)
    for entry, line in zip(entries, lines, strict=True):
        prefix = CONTINUATION if entry.startswith(CONTINUATION) else ""
        found.setdefault(prefix + line, []).append(in_text[entry])
    return found


def _normal(texts: Sequence[str], settings: TextSettings) -> list[str]:
    """Return BERT's words of each text, separated by spaces."""
    joined = "\n".join(text.replace(" ", "") for text in texts)
    return bert_splitter(*settings[:2]).lines(joined).split("\n") if texts else []


def _split(
    texts: Sequence[str], in_text: Mapping[str, int], settings: TextSettings, continues: bool
) -> list[list[int]]:
    """Return the older pieces of each text, read as words, or as rests of words if it `continues` one; [] for a text
    of which nothing is known."""
    match, lines = _matcher(in_text, continues), _normal(texts, settings)
    pieces = match(lines)
    known = {entry.removeprefix(CONTINUATION) for entry in in_text}
    again = [i for i, found in enumerate(pieces) if not found]
    shortened = ("".join(c for c in lines[i] if c in known or c == " ") for i in again)
    for i, found in zip(again, match(shortened), strict=True):
        pieces[i] = found
    return pieces


def _matcher(in_text: Mapping[str, int], continues: bool) -> Callable[[Iterable[str]], list[list[int]]]:
    """Return a function that splits lines of words into pieces; a line with a word that has none gets []."""
    own = [entry for entry in in_text if entry.startswith(CONTINUATION)] if continues else list(in_text)
    # The rest of a word may begin with any ## entry, so that each of them is also an entry that begins a word.
    numbers = {entry: i for i, entry in enumerate(own)}
    if continues:
        numbers = {form: i for i, entry in enumerate(own) for form in (entry, entry.removeprefix(CONTINUATION))}
    numbers[UNK] = len(own)
    match, ids_N = Matcher(numbers), np.array([in_text[entry] for entry in own] + [NEW], np.int64)

    def split(lines: Iterable[str]) -> list[list[int]]:
        flat, ends = match("".join(f"{line}\n" for line in lines))
        pieces = [part.tolist() for part in np.split(ids_N[flat.astype(np.int64)], ends[:-1])] if len(ends) else []
        return [[] if NEW in part else part for part in pieces]

    return split
