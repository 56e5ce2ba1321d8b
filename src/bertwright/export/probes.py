"""Inputs given to both a trained model and its exported folder, so that their outputs can be compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertwright.core import rng
from bertwright.vocab.entries import CLS, MASK, SEP
from bertwright.vocab.tokenizer import Tokenizer

# Composed and decomposed accents, several scripts, no-break spaces, masks with and without a space before them; letters
# that NFC takes apart, a final sigma, and punctuation that older tables lack.
PROBES = (
    "Árvíztűrő tükörfúrógép, ÁRVÍZTŰRŐ TÜKÖRFÚRÓGÉP.",
    "A\u0301rvi\u0301ztu\u030bro\u030b tu\u0308ko\u0308rfu\u0301ro\u0301ge\u0301p.",
    "Zażółć gęślą jaźń; Київ, Ελλάδα, 東京 and naïve café.",
    "\u09b8\u09ae\u09df, \u09ac\u09be\u09dc\u09bf, \u0958\u0932\u092e, \u05e9\ufb2a\u05dc\u05d5\u05b9\u05dd.",
    "ΟΔΟΣ; a\u09fdb, a\u2e55b, \u212b and 5 k\u2126.",
    "It's 3.5 % of „something” - isn't it? \u00a0 (No.)",
    f"The {MASK} of a word, and{MASK}, {MASK}.",
)
ROWS = 8

Row = tuple[list[int], list[int]]


def rows_of(tokenizer: Tokenizer, texts: Sequence[str], positions: int) -> list[Row]:
    """Token ids of both segments, cut to `positions`; each row has a [MASK] in the middle of its first segment."""
    # A sequence that fills all positions: an error in the last position embeddings shows nowhere else.
    words = rng.below(rng.key("export"), np.arange(positions - 3), len(tokenizer.vocabulary)).tolist()
    half = len(words) // 2
    rows = [([tokenizer.ids(CLS), *words[:half], tokenizer.ids(SEP)], [*words[half:], tokenizer.ids(SEP)])]
    for a, b in zip(texts[:ROWS], [*texts[1:ROWS], texts[0]], strict=False):
        first, second = segments_of(tokenizer, a, b)
        first = first[:positions]
        rows.append((first, second[: positions - len(first)]))
    for first, _ in rows:
        first[len(first) // 2] = tokenizer.ids(MASK)
    return rows


def segments_of(tokenizer: Tokenizer, a: str, b: str) -> Row:
    """[CLS] a [SEP] and b [SEP] as this project encodes them; "[MASK]" in a text means the mask token, and so on."""
    flat, lengths = tokenizer.encode_texts([a, b])
    first, second = flat[: lengths[0]].tolist(), flat[lengths[0] :].tolist()
    return [tokenizer.ids(CLS), *first, tokenizer.ids(SEP)], [*second, tokenizer.ids(SEP)]
