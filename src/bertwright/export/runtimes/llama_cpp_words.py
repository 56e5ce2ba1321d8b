"""WordPiece in llama.cpp: which tokenizers its format can hold, and for which texts it gives other ids than BERT.

Read in src/llama-vocab.cpp and compared code point by code point, with and without lower case and accents, for build
11549 (October 2026).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.corpus.characters import WORD_BREAK
from bertwright.export.runtimes.differences import (
    CASED,
    LOWER,
    STRIPPED,
    Difference,
    decomposed_words,
    explained,
    long_words,
    newer_characters,
    words,
)
from bertwright.vocab.config import LONGEST_WORD
from bertwright.vocab.entries import CONTINUATION, WORD_BREAKS, TextSettings

WORD_START = "\u2581"
"""In its format an entry that starts a word begins with this, and one that continues a word with nothing."""
_FORMS = ("NFC", "Lowercase", "StripAccents")


def unsupported(tokenizer: Mapping[str, Any]) -> str:
    """What llama.cpp's WordPiece cannot do of a `tokenizer.json`, in words that follow "this tokenizer"; "" if it can
    do all."""
    model = tokenizer.get("model") or {}
    if model.get("type") != "WordPiece":
        return f"is {model.get('type') or 'of no known kind'}, not WordPiece"
    if model.get("continuing_subword_prefix", CONTINUATION) != CONTINUATION:
        return f"marks continuations with {model['continuing_subword_prefix']!r} instead of {CONTINUATION!r}"
    for part in _parts(tokenizer.get("normalizer")):
        if part.get("type") == "BertNormalizer":
            for setting in ("clean_text", "handle_chinese_chars"):
                if not part.get(setting, True):
                    return f"has {setting} = false, and llama.cpp always does that"
        elif part.get("type") not in _FORMS and part != WORD_BREAKS:
            return f"has the normalization {part.get('type')}, which llama.cpp does not know"
    splitter = (tokenizer.get("pre_tokenizer") or {}).get("type")
    if splitter != "BertPreTokenizer":
        return f"splits texts by {splitter}, not as BERT does"
    forms = Counter(map(_stored, model.get("vocab", {})))
    for form, count in forms.items():
        # Two entries of one form, or an empty one, stop the whole process when llama.cpp loads the file.
        if count > 1 or form in ("", WORD_START):
            return f"has an entry that is stored as {form!r}, which llama.cpp takes for another one"
    return ""


def explain(text: str, settings: TextSettings, build: int) -> str:
    """Why a build of llama.cpp gives other ids for this text than a tokenizer with these settings, each reason with the
    first piece of the text that shows it; "" if no known difference applies."""
    older = [difference for mended, difference in MENDED.items() if build < mended]
    return explained(text, settings, [*older, *DIFFERENCES])


def _parts(normalizer: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(normalizer, dict) and normalizer.get("type") == "Sequence":
        for part in normalizer.get("normalizers") or []:
            yield from _parts(part)
    elif isinstance(normalizer, dict):
        yield normalizer


def _stored(entry: str) -> str:
    return entry[len(CONTINUATION) :] if entry.startswith(CONTINUATION) else WORD_START + entry


def _spaces(text: str, settings: TextSettings) -> Iterator[str]:
    return (character for character in text if character in "\v\f\x85")


def _breaks(text: str, settings: TextSettings) -> Iterator[str]:
    return (text[found.start() - 1 : found.end() + 1] for found in re.finditer(WORD_BREAK, text))


def _marks(text: str, settings: TextSettings) -> Iterator[str]:
    if settings.strip_accents:
        yield from (character for character in text if unicodedata.category(character) in ("Mc", "Me"))


def _decomposed(text: str, settings: TextSettings) -> Iterator[str]:
    if settings.strip_accents:
        for character in text:
            kept = [part for part in unicodedata.normalize("NFD", character) if unicodedata.category(part) != "Mn"]
            if len(kept) > 1:
                yield character


def _dotted(text: str, settings: TextSettings) -> Iterator[str]:
    if settings.lower_case and not settings.strip_accents:
        yield from (character for character in text if len(character.lower()) > 1)


def _starts(text: str, settings: TextSettings) -> Iterator[str]:
    return (word for word in words(text) if WORD_START in word)


def _newer(text: str, settings: TextSettings) -> Iterator[str]:
    return newer_characters(text)


def _capital(text: str, settings: TextSettings) -> Iterator[str]:
    if not settings.lower_case:
        yield from (word for word in text.split() if word != word.lower())


def _accented(text: str, settings: TextSettings) -> Iterator[str]:
    if not settings.strip_accents:
        for word in text.split():
            if "Mn" in map(unicodedata.category, unicodedata.normalize("NFD", word)):
                yield word


MENDED: Mapping[int, Difference] = {
    9538: Difference("Duna", CASED, "llama.cpp before build 9538 lower-cases every text", _capital),
    9713: Difference("ő", CASED, "llama.cpp before build 9713 strips the accents of every text", _accented),
}
"""Of older builds, by the first that was seen without (pull requests 23899 and 24371); 9294 and 9538 have them."""
DIFFERENCES: Sequence[Difference] = (
    Difference(
        "a" * (LONGEST_WORD + 1),
        CASED,
        "A word of more characters than the tokenizer allows is [UNK] there, but llama.cpp takes it apart",
        long_words,
    ),
    Difference(
        "e\u0301",
        CASED,
        "llama.cpp does not compose letters and their accents, so texts must be in NFC",
        decomposed_words,
    ),
    Difference(
        "ខ\u200bគ",
        CASED,
        "A zero-width space between words, as in Khmer, is a space here, and llama.cpp removes it",
        _breaks,
    ),
    Difference("a\vb", CASED, "BERT removes this control character, which is a space for llama.cpp", _spaces),
    Difference(
        "a\u2581b",
        CASED,
        "llama.cpp's format marks the start of a word with this character, so it finds one inside the word",
        _starts,
    ),
    Difference(
        "a\u2e55b",
        CASED,
        "llama.cpp and the library tokenizers have different versions of Unicode, and so split or remove this "
        "character differently",
        _newer,
    ),
    Difference(
        "İ", LOWER, "BERT's lower case of this letter has two characters, of which llama.cpp has the first", _dotted
    ),
    Difference(
        "का",
        STRIPPED,
        "Where accents are stripped, llama.cpp strips the vowel signs of Indic scripts, too, which BERT keeps",
        _marks,
    ),
    Difference(
        "각",
        STRIPPED,
        "Where accents are stripped, letters are decomposed, and llama.cpp keeps the first part only",
        _decomposed,
    ),
)
