"""Texts of which transformers.js makes other ids than the library tokenizers: its tokenizer is written in JavaScript.

Read in @huggingface/tokenizers 0.2.0, which version 4.3.2 has, and compared code point by code point under Node.js 20.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from bertwright.export.runtimes.differences import CASED, LOWER, STRIPPED, Difference, explained, newer_characters
from bertwright.export.runtimes.runtime import Published
from bertwright.vocab.entries import TextSettings, text_settings

_IDEOGRAPHS = re.compile(
    "[\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]"
)  # fmt: skip
"""Those beyond U+FFFF that tokenizers separates."""


def explain(model: Published, text: str) -> str:
    """Why transformers.js gives other ids for this text than the tokenizer.json of the model does in tokenizers; "" if
    no known difference applies."""
    reasons = [explained(text, text_settings(model.folder) or CASED, DIFFERENCES)]
    positions = model.positions
    if len(_tokenizer(model.folder / "tokenizer.json").encode(text).ids) > positions:
        reasons.append(f"transformers.js cuts a text at {positions} tokens without keeping [SEP].")
    return " ".join(filter(None, reasons))


@lru_cache(1)
def _tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    return tokenizer


def _ideographs(text: str, settings: TextSettings) -> Iterator[str]:
    # Some from below become one of these in NFC.
    return (c for c in text if _IDEOGRAPHS.search(c + unicodedata.normalize("NFC", c)))


def _sigmas(text: str, settings: TextSettings) -> Iterator[str]:
    # Python's lower case has the same rule for the end of a word.
    return (word for word in text.split() if settings.lower_case and word.lower().count("ς") > word.count("ς"))


def _newer(text: str, settings: TextSettings) -> Iterator[str]:
    return newer_characters(text)


def _accents(text: str, settings: TextSettings) -> Iterator[str]:
    from tokenizers.normalizers import BertNormalizer

    if settings.strip_accents:
        strip = BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
        for character in dict.fromkeys(text):
            parts = unicodedata.normalize("NFD", character)
            if strip.normalize_str(character) != "".join(c for c in parts if unicodedata.category(c) != "Mn"):
                yield character


DIFFERENCES: Sequence[Difference] = (
    Difference("𠊛𠊛", CASED, "Ideographs beyond U+FFFF are not words of their own in transformers.js", _ideographs),
    Difference(
        "ΟΔΟΣ", LOWER, "At the end of a word, the lower case of Σ is ς in transformers.js, and σ in BERT", _sigmas
    ),
    Difference(
        "a\u09fdb",
        CASED,
        "Node.js and the library tokenizers have different versions of Unicode, and so split or remove this character "
        "differently",
        _newer,
    ),
    Difference(
        "a\u1df6b",
        STRIPPED,
        "Node.js and the library tokenizers have different versions of Unicode, of which one has this accent",
        _accents,
    ),
)
