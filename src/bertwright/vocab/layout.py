"""The first entries of a trained vocabulary, the same for all trainers: special entries and characters."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError, RecipeError
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import CLS, CONTINUATION, MASK, PAD, SEP, UNK
from bertwright.vocab.normalization import bert_splitter

ENTRIES_A_CHARACTER = 30
"""One character is kept per 30 entries, however rare it is: 1,000 of 30,000, the usual alphabet limit of WordPiece
trainers. That covers every character of an alphabetic script; it matters for scripts with thousands of characters."""


def special_entries(unused: int) -> list[str]:
    """[PAD], [unused0], ..., [UNK], [CLS], [SEP], [MASK]: the order of the published vocabularies."""
    return [PAD, *(f"[unused{i}]" for i in range(unused)), UNK, CLS, SEP, MASK]


def first_entries(config: VocabConfig, words: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The special entries and the commonest characters of `words` with their ## forms, and the characters alone.

    This ensures that no kept character becomes [UNK], not even inside a word. Raises `DataError` without text, and
    `RecipeError` if the entries exceed the size.
    """
    characters, counts = count_characters(words)
    if not characters:
        raise DataError("there is no text to train a vocabulary on. Raise vocab.sample_bytes, or give more text.")
    covered = np.cumsum(counts)
    enough = 1 + int(np.searchsorted(covered, config.alphabet_coverage * covered[-1]))
    # Coverage alone would drop the rare letters of small alphabets even if there is room for all of them.
    alphabet = characters[: max(enough, (config.size or 0) // ENTRIES_A_CHARACTER)]
    # The ## form of a character that BERT always separates can never match: Chinese would waste thousands of entries.
    inside = [not _stands_alone(character) for character in alphabet]
    special, entries = special_entries(config.unused), np.cumsum(inside) + np.arange(1, len(inside) + 1)
    fitting = int(np.searchsorted(entries, (config.size or 0) - len(special), "right"))
    if fitting < len(alphabet):
        fits = covered[fitting - 1] / covered[-1] if fitting else 0.0
        raise _too_small(config, int(entries[-1]) + len(special), len(alphabet), fits)
    continuing = [CONTINUATION + character for character, needed in zip(alphabet, inside, strict=True) if needed]
    return [*special, *sorted(alphabet), *sorted(continuing)], sorted(alphabet)


def count_characters(words: Mapping[str, int]) -> tuple[list[str], NDArray[np.int64]]:
    """The characters of counted words and [C] their counts, commonest first, with ties in code-point order."""
    characters = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    occurrences, lengths = (np.fromiter(of_each, np.int64, len(words)) for of_each in (words.values(), map(len, words)))
    counts = np.bincount(characters, np.repeat(occurrences, lengths)).astype(np.int64)
    present = np.flatnonzero(counts)
    # Stable, so that ties are in code-point order in every process.
    order = present[np.argsort(-counts[present], kind="stable")]
    return [chr(character) for character in order], counts[order]


def _too_small(config: VocabConfig, needed: int, characters: int, covered: float) -> RecipeError:
    lower = f", or lower vocab.alphabet_coverage to {floor(covered * 1e4) / 1e4:g}" if covered > 1e-4 else ""
    unused = ", or lower vocab.unused" if config.unused else ""
    return RecipeError(
        f"vocab.size={config.size:,} is too small: the {characters:,} characters that make up "
        f"{config.alphabet_coverage:.2%} of the text need {needed:,} entries, with their ## forms and the special ones."
        f" Raise vocab.size above that{lower} (words with a rarer character become [UNK]){unused}."
    )


def _stands_alone(character: str) -> bool:
    """Whether BERT always splits around it (punctuation, CJK), so that its ## form could never be used."""
    return len(bert_splitter(lower_case=False, strip_accents=False).words(f"a{character}a")) > 1
