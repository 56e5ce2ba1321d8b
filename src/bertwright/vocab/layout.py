"""The beginning of a trained vocabulary, the same whichever trainer makes the rest: special entries and characters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bertwright.core.errors import DataError, RecipeError
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.normal import CLS, CONTINUATION, MASK, PAD, SEP, UNK, bert_splitter


def special_entries(unused: int) -> list[str]:
    """[PAD], [unused0], ..., [UNK], [CLS], [SEP], [MASK]: the order of the published vocabularies."""
    return [PAD, *(f"[unused{i}]" for i in range(unused)), UNK, CLS, SEP, MASK]


def first_entries(config: VocabConfig, words: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The special entries and the commonest characters of `words` with their ## forms, and these characters alone.

    So no kept character can end as [UNK], also inside a word.
    """
    size = config.size or 0
    special, alphabet = special_entries(config.unused), common_characters(words, min(config.alphabet, size // 4))
    if not alphabet:
        raise DataError("there is no text to train a vocabulary on. Raise vocab.sample_bytes, or give more text.")
    first = special + alphabet + [CONTINUATION + c for c in alphabet if not _stands_alone(c)]
    if len(first) > size:
        raise RecipeError(
            f"vocab.size={size:,} is too small: {len(special):,} special entries and {len(alphabet):,} characters "
            f"with their ## forms need {len(first):,}. Raise vocab.size or lower vocab.unused."
        )
    return first, alphabet


def common_characters(words: Mapping[str, int], limit: int) -> list[str]:
    """The `limit` commonest characters of counted words, by code point; ties go to the lower code point."""
    characters = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    occurrences, lengths = (np.fromiter(of_each, np.int64, len(words)) for of_each in (words.values(), map(len, words)))
    counts = np.bincount(characters, np.repeat(occurrences, lengths))
    present = np.flatnonzero(counts)
    commonest = present[np.argsort(-counts[present], kind="stable")[:limit]]
    return [chr(character) for character in np.sort(commonest)]


def _stands_alone(character: str) -> bool:
    """Whether BERT always splits around it (punctuation, CJK), so that its ## form could never be used."""
    return len(bert_splitter(lower_case=False, strip_accents=False).words(f"a{character}a")) > 1
