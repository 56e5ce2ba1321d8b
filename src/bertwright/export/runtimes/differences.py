"""Texts of which a runtime with a tokenizer of its own makes other ids than the library tokenizers, and why."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bertwright.vocab.entries import TextSettings

CASED, LOWER, STRIPPED = TextSettings(False, False), TextSettings(True, False), TextSettings(True, True)
_FORMAT = frozenset({0x890, 0x891, 0x8E2, 0x110CD, *range(0x13430, 0x13440)})
"""Format characters that tokenizers keeps, because its tables are older, and others remove."""


class Difference(NamedTuple):
    """A kind of text that a runtime tokenizes otherwise."""

    example: str
    """The shortest text that shows it."""
    settings: TextSettings
    """Of a tokenizer that shows it."""
    reason: str
    pieces: Callable[[str, TextSettings], Iterator[str]]
    """All pieces of a text that show it for a tokenizer with these settings."""


def explained(text: str, settings: TextSettings, differences: Sequence[Difference]) -> str:
    """Why a runtime with these differences gives other ids for this text than a tokenizer with these settings, each
    reason with the first piece of the text that shows it; "" if none applies."""
    found = ((difference, next(difference.pieces(text, settings), "")) for difference in differences)
    return " ".join(f"{difference.reason}: {piece!r}." for difference, piece in found if piece)


def words(text: str) -> list[str]:
    """The text cut at white space and punctuation, as BERT does."""
    from tokenizers.pre_tokenizers import BertPreTokenizer  # here, because recipes are checked without it

    return [word for word, _ in BertPreTokenizer().pre_tokenize_str(text)]


def long_words(text: str, settings: TextSettings) -> Iterator[str]:
    """The words that are [UNK] because of their length."""
    return (word for word in words(text) if len(word) > settings.longest_word)


def decomposed_words(text: str, settings: TextSettings) -> Iterator[str]:
    """The words whose letters and accents are not composed, for a runtime that does not compose them."""
    if not settings.strip_accents:  # otherwise both take letters apart
        yield from (word for word in text.split() if not unicodedata.is_normalized("NFC", word))


def newer_characters(text: str) -> Iterator[str]:
    """The characters that are punctuation or controls in the tables of current programs or of tokenizers, whose tables
    are of 2015, but not in both."""
    for character in dict.fromkeys(text):
        if ord(character) > 127:
            category, alone = unicodedata.category(character), len(words(f"a{character}b")) == 3
            if (category[0] == "P") != alone or category == "Cn" or ord(character) in _FORMAT:
                yield character
