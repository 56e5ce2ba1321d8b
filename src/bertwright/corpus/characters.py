"""Characters of any script: their normal form (NFC), made in time linear in the text, whatever it contains, and case.

Does not import numpy: checking a recipe reads the first records of its sources.
"""

from __future__ import annotations

import re
import unicodedata

# Normalisation sorts a run of combining marks in quadratic time. Unicode's Stream-Safe Text Format
# (UAX #15) limits a run to 30; no language comes near. Marks beyond the BMP are left unchanged.
_MARKS = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x10000))))
_STEP = 16
# A run of 32 marks leaves two adjacent marks in every sixteenth character of a text, which is quick to search.
_SAMPLED = re.compile(f"[{_MARKS}]{{2}}")


def composed(text: str) -> str:
    """The text in NFC; of more than 31 combining marks in a row the first 30 are kept."""
    if text.isascii():
        return text
    if _SAMPLED.search(text[::_STEP]):
        # Compiled only here: it takes milliseconds.
        text = re.sub(f"[{_MARKS}][{_MARKS}]{{30,}}", lambda marks: marks[0][:30], text)
    # Line by line, because one combining mark makes the normalisation of the entire string slow: 0.1 s more on
    # the Ukrainian sample.
    return "\n".join(unicodedata.normalize("NFC", line) for line in text.split("\n"))


def is_small(letter: str) -> bool:
    """Whether a letter is small and has a capital for the beginning of a sentence, or is an ordinal sign ("Sra.ª").

    Georgian letters are small in Unicode, but their capitals are only for words entirely in capitals.
    """
    return letter.islower() and (letter.title() != letter or letter in "ªº")
