"""Near-copies by the definition: the share of runs of five words that two texts have in common, no sketch.

Broder 1997, "On the resemblance and containment of documents": resemblance is the Jaccard index of the sets of
contiguous runs ("shingles"). Words are taken as the corpus stage takes them: without case, marks and the
values of numbers.
"""

from __future__ import annotations

import re
import unicodedata


def shingles(text: str, n: int = 5) -> set[tuple[str, ...]]:
    """The runs of `n` words of a text; all of it where it is shorter."""
    plain = "".join(c for c in text.casefold() if unicodedata.category(c)[0] not in "PS")
    words = re.sub(r"\d+", "0", plain).split()
    return {tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))}


def resemblance(first: str, second: str) -> float:
    """The Jaccard index of their shingles."""
    a, b = shingles(first), shingles(second)
    return len(a & b) / len(a | b)
