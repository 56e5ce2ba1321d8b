"""The lines that a certificate is made on: texts that the model did not learn from, and texts that break tokenizers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertwright.core import rng
from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.core.files import read_text
from bertwright.corpus.heldout import heldout_documents
from bertwright.vocab.entries import CONTINUATION, MASK, SPECIALS

LINES = 1000
"""Lines that outputs are compared on; the ids of all lines are."""
_MOST_BYTES = 1 << 28
_MASK_WITHIN = 40
NASTY = (
    "Árvíztűrő tükörfúrógép, ÁRVÍZTŰRŐ TÜKÖRFÚRÓGÉP.",
    "A\u0301rvi\u0301ztu\u030bro\u030b tu\u0308ko\u0308rfu\u0301ro\u0301ge\u0301p.",  # the same, decomposed
    "naïve café, coöperate, Ångström, \u212bngstrom, 5 k\u2126",
    "Zażółć gęślą jaźń; příliš žluťoučký kůň; șțăâî şţ",
    "İstanbul, ıssız, IŞIK, i̇",
    "ΟΔΟΣ ὈΔΥΣΣΕΎΣ Ὀδυσσεύς, άέήίόύώ",
    "Київ, ґанок, Ёлка, ёлка, Й й И\u0306",
    "東京都は日本の首都。漢字とかなカナ。ﾊﾝｶｸ",
    "北京是中国的首都,人口2154万。",
    "서울은 대한민국의 수도이다. \u1109\u1165\u110b\u116e\u11af",
    "ประเทศไทยมีกรุงเทพมหานครเป็นเมืองหลวง",
    "\u0995\u09be\u099c \u09a1\u09bc\u09bf\u09dc\u09cb \u09af\u09bc\u09df",  # nukta, composed and not
    "हिन्दी \u0958\u0932\u092e क\u093cलम",
    "שָׁלוֹם עוֹלָם, \u05e9\ufb2a\u05dc\u05d5\u05b9\u05dd",
    "السلام عليكم، قَلَمٌ لا ﻻ",
    "emoji 😀 👩‍👩‍👧 🇭🇺 👍🏽 ❤️ ☃",
    "a\u200bb zero\u200dwidth\u200cjoiners \u2060word\u2060joiner \ufeffbom",
    "soft\u00adhyphen non\u2011breaking hy\u2010phen en–dash em—dash",
    "tabs\tand  several   spaces\u00a0no-break\u3000ideographic\u2003em",
    "control \u0001\u0002\u0007\u007f\u0085 \u2028line\u2029paragraph",
    "replacement \ufffd and null \u0000 inside",
    "private \ue000 use, unassigned \u0378, surrogate pair \U0001f9ff, plane two \U00020000\U0002a6d6",
    "ligatures ﬁ ﬂ ﬀ ﬃ, fullwidth ＡＢＣ １２３, superscript x² H₂O ½",
    "ß ẞ STRASSE straße, ŉ ǰ ΐ և",
    "Dž ǆ ǅ Ǆ, ﬅ, K K",
    "don't can’t l'homme l’été ’tis \u02bcn",
    "3.14, 1,000,000, -5 °C, 50 %, €20, ₿1, №5, §7",
    "https://example.org/a_b?c=d&e=%20#f user@example.org C:\\dir\\file.txt",
    "x=[1,2];y={a:b};if(x<y&&z>=3){return ~x^y|z;}",
    "\"quoted\" „idézet” «guillemets» 'single' ‘curly’ `back` ´acute´",
    "... … !!! ?!?! ---- ____ **** #### @@@@ ++++",
    "$ ^ ` ~ | \\ < > = + ¢ £ ¥ ¬ ¦ × ÷ ±",
    "The [MASK] of [CLS] and [SEP], [PAD], [UNK] and [mask].",
    "##ing ## # [ MASK ] [unused1] <|mask|> <|endoftext|>",
    "pneumonoultramicroscopicsilicovolcanoconiosis megszentségteleníthetetlenségeskedéseitekért",
    "a" * 99 + " " + "b" * 100 + " " + "c" * 101,
    "\u0e01" * 130,
    "d" * 999 + " " + "e" * 1000 + " " + "f" * 1001,
    "A",
    ".",
    " ".join(f"word{number % 7} túl hosszú" for number in range(200)),  # 600 words
)
"""Accents composed and decomposed, case beyond ASCII, scripts with and without spaces, signs that look like nothing,
controls, marks of tokenizers in running text, words at the limits of 100 and 1,000 characters, and 600 words."""


@dataclass(frozen=True)
class Lines:
    """The texts of a certificate."""

    source: str
    """Where they come from, for people."""
    texts: tuple[str, ...]
    """Without the nasty ones, which are always among them."""

    @property
    def compared(self) -> list[str]:
        """The texts that outputs are compared on."""
        return [*NASTY, *self.texts[:LINES]]

    @property
    def others(self) -> list[str]:
        """The texts of which only the ids are compared."""
        return list(self.texts[LINES:])


def read_lines(path: Path) -> Lines:
    """The lines of a text file, without empty ones; `DataError` if there are none."""
    # Not splitlines: it also breaks at the separators that a line may be there for.
    texts = tuple(line for line in read_text(path, _MOST_BYTES).split("\n") if line.strip())
    if not texts:
        raise DataError(f"{path} has no lines. Give a text file with a text on each line.")
    return Lines(path.name, texts)


def vocabulary_lines(entries: Sequence[str]) -> Lines:
    """Lines of 5 to 30 words put together from the entries of a vocabulary, for a model of which no texts are known."""
    begins = [entry for entry in entries if not entry.startswith(CONTINUATION) and entry not in SPECIALS]
    ends = [entry.removeprefix(CONTINUATION) for entry in entries if entry.startswith(CONTINUATION)]
    if not begins:
        raise DataError("the vocabulary has no word; give texts with --lines")
    lines, drawn = list[str](), iter(_draw(LINES * 100))
    for number in range(LINES):
        words = (begins[next(drawn) % len(begins)] for _ in range(5 + number % 26))
        # Every third word goes on, so that entries inside words are met, too.
        lines.append(
            " ".join(w + (ends[next(drawn) % len(ends)] if ends and i % 3 == 0 else "") for i, w in enumerate(words))
        )
    return Lines("words of its vocabulary, in no order", tuple(lines))


def heldout_lines(corpus: Artifact, share: float) -> Lines | None:
    """`LINES` sentences at most, evenly spread, of the documents that a corpus holds out; None if it holds out none."""
    sentences = [sentence for document in heldout_documents(corpus, share) for sentence in document]
    return Lines("held-out sentences", tuple(_spread(sentences))) if sentences else None


def with_mask(text: str, positions: int, mask: str = MASK) -> tuple[str, str]:
    """The text with one of its words, or of its characters if it has no spaces, replaced by `mask`, and what was
    replaced: the middle one, but among the first ones, so that cutting a long text to the model's `positions` never
    loses it."""
    # A character may become two tokens, such as a letter and its accent.
    within = min(_MASK_WITHIN, (positions - 4) // 2)
    text = text.replace(mask, " ")
    words = text.split(" ")
    middle = len(words) // 2
    while middle and len(" ".join(words[:middle])) > within:
        middle -= 1
    if middle:
        return " ".join([*words[:middle], mask, *words[middle + 1 :]]), words[middle]
    place = min(len(text) // 2, within)
    return f"{text[:place]}{mask}{text[place + 1 :]}", text[place : place + 1]


def _draw(count: int) -> list[int]:
    drawn: list[int] = rng.bits(rng.key("certificate"), np.arange(count)).tolist()
    return drawn


def _spread(sentences: Sequence[str]) -> Iterable[str]:
    count = min(LINES, len(sentences))
    return (sentences[number * len(sentences) // count] for number in range(count))
