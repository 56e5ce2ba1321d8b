"""The counts of the stage `vocab`, as stored in its manifest."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from bertwright.core.shapes import Count, Flag, Number, Text


class Rates(TypedDict, total=False):
    """How a vocabulary tokenises a text."""

    words: Count
    fertility: Number
    unknown_rate: Number
    single_character_rate: Number
    unused_rate: Number
    entries: Count
    unused: Count


class _Trained(TypedDict, total=False):
    documents: Count
    bytes: Count
    share: Number


class _Alphabet(TypedDict):
    characters: Count
    of: Count
    coverage: Number
    missing: list[Text]


class _Extended(TypedDict):
    older: Count
    added: Count
    in_unused: Count
    characters: Count
    badly_split_words: Count
    older_fertility: Number
    older_unknown_rate: Number
    examples: list[Text]


class Counts(Rates, total=False):
    """Counts of the vocabulary, and how it tokenises the corpus."""

    sample_words: Count
    unknown_character_rate: Number
    too_long: Count
    alphabet: _Alphabet
    sample_tokens: Count
    scripts: dict[Text, Rates]
    trained_on: _Trained
    extended: _Extended
    """What was added to a finished vocabulary."""
    vocabulary: Text
    lower_case: Flag
    strip_accents: Flag
    longest_word: Count


class Settings(TypedDict, total=False):
    """The settings of a vocabulary, which others only compare."""

    vocab: dict[Text, Any]
