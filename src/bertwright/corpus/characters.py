"""The characters of a text as they go on: composed (NFC), in time that is linear in the text whatever it holds."""

from __future__ import annotations

import re
import unicodedata

# Normalisation sorts a run of combining marks in quadratic time. Unicode's Stream-Safe Text Format
# (UAX #15) bounds a run at 30; no language comes near. Marks beyond the BMP are left alone.
_MARKS = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x10000))))
_STACKED = re.compile(f"[{_MARKS}][{_MARKS}]{{30,}}")
_STEP = 16
# What a run of 32 marks leaves in every sixteenth character of a text: a sixteenth of the text is soon searched.
_SAMPLED = re.compile(f"[{_MARKS}]{{2}}")


def composed(text: str) -> str:
    """The text in NFC; of more than 31 combining marks in a row the first 30 are kept."""
    if text.isascii():
        return text
    if _SAMPLED.search(text[::_STEP]):
        text = _STACKED.sub(lambda marks: marks[0][:30], text)
    # Line by line, because one combining mark makes all of what it is given slow: 0.1 s more on the
    # Ukrainian sample.
    return "\n".join(unicodedata.normalize("NFC", line) for line in text.split("\n"))
