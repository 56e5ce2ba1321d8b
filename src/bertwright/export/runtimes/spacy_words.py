"""How spacy-curated-transformers divides words into pieces, and for which words it does not do so as BERT."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from bertwright.export.runtimes.differences import (
    CASED,
    LOWER,
    Difference,
    decomposed_words,
    explained,
    long_words,
    newer_characters,
    words,
)
from bertwright.export.runtimes.runtime import Published
from bertwright.model.text_encoder import load_tokenizer
from bertwright.vocab.config import LONGEST_WORD
from bertwright.vocab.entries import SPECIALS, UNK, TextSettings, text_settings
from bertwright.vocab.tokenizer import Tokenizer

_SPECIAL = re.compile("|".join(map(re.escape, SPECIALS)))
UNKNOWN = "In spaCy the known beginning of a word with an unknown character is kept"


def set_pieces(encoder: Any, folder: Path) -> Tokenizer:
    """Give a piece encoder of spacy-curated-transformers the vocabulary and the text settings of a model; returns its
    tokenizer here."""
    from curated_tokenizers import WordPieceProcessor

    tokenizer, settings = load_tokenizer(folder), text_settings(folder)
    assert settings is not None
    encoder.attrs["wordpiece_processor"] = WordPieceProcessor(tokenizer.vocabulary)
    encoder.attrs["lowercase"], encoder.attrs["strip_accents"] = settings[:2]
    return tokenizer


def piece_ids(encoder: Any, vocab: Any, words: list[str]) -> list[int]:
    """The ids of words, with [CLS] and [SEP]; `vocab` is that of a pipeline, which knows the lower case of words."""
    from spacy.tokens import Doc

    (found,) = encoder.predict([Doc(vocab, words=words)])
    ids: list[int] = found.dataXd.tolist()
    return ids


def explain(model: Published, text: str) -> str:
    """Why spaCy gives other ids for this text, by its first word that gets others; "" if no known difference applies.

    Words are read here as there, because the vocabulary decides which of them differ.
    """
    encoder, vocab, tokenizer = _opened(model.folder)
    for word in text.split():
        flat, _ = tokenizer.encode_texts([word])
        if flat.tolist() != piece_ids(encoder, vocab, [word])[1:-1]:
            reason = explained(word, text_settings(model.folder) or CASED, DIFFERENCES)
            has_unknown = UNK in tokenizer.fast.encode(word, add_special_tokens=False).tokens
            return reason or (f"{UNKNOWN}: {word!r}." if has_unknown else "")
    return ""


@lru_cache(maxsize=1)
def _opened(folder: Path) -> tuple[Any, Any, Tokenizer]:
    import spacy
    from spacy_curated_transformers.tokenization import build_bert_wordpiece_encoder_v1

    encoder = build_bert_wordpiece_encoder_v1()
    return encoder, spacy.blank("xx").vocab, set_pieces(encoder, folder)


def _special(text: str, settings: TextSettings) -> Iterator[str]:
    yield from _SPECIAL.findall(text)


def _chinese(text: str, settings: TextSettings) -> Iterator[str]:
    from tokenizers.normalizers import BertNormalizer

    divide = BertNormalizer(clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False)
    return (word for word in words(text) if len(word) > 1 and divide.normalize_str(word) != word)


def _invisible(text: str, settings: TextSettings) -> Iterator[str]:
    return (character for character in text if unicodedata.category(character)[0] == "C" or character == "\ufffd")


def _cases(text: str, settings: TextSettings) -> Iterator[str]:
    if settings.lower_case:
        yield from (word for word in text.split() if word.lower() != "".join(map(str.lower, word)))


def _newer(text: str, settings: TextSettings) -> Iterator[str]:
    return newer_characters(text)


DIFFERENCES: Sequence[Difference] = (
    Difference("[MASK]", CASED, "In spaCy special entries are text like any other", _special),
    Difference("東京", CASED, "In spaCy words are not divided between Chinese characters", _chinese),
    Difference(
        "A\u0301rvi\u0301z", CASED, "In spaCy letters and their accents are not composed (NFC)", decomposed_words
    ),
    Difference("tűr\u00adő", CASED, "In spaCy characters that are not shown are not removed", _invisible),
    Difference(
        "a" * (LONGEST_WORD + 1),
        CASED,
        "In spaCy a word of any length is divided, in BERT a long one is [UNK]",
        long_words,
    ),
    Difference("ΟΔΟΣ", LOWER, "At the end of a word, the lower case of Σ is ς in spaCy, and σ in BERT", _cases),
    Difference("a\u2e55b", CASED, "Python and the library tokenizers have different tables of punctuation", _newer),
)
"""All that are known; what also depends on the vocabulary is `UNKNOWN`."""
