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


def dropped(signatures: list[list[tuple[int, ...]]], similarity: float) -> list[int]:
    """The documents that the corpus stage drops, by its rule and nothing else; signatures are lists of bands.

    In each band a document is compared with the first that has the same numbers there, and with the last before it.
    """
    found = set()
    for band in range(len(signatures[0])):
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, signature in enumerate(signatures):
            group = groups.setdefault(signature[band], [])
            partners = {group[0], group[-1]} if group else set()
            if any(_share(signature, signatures[partner]) >= similarity for partner in partners):
                found.add(number)
            group.append(number)
    return sorted(found)


def _share(first: list[tuple[int, ...]], second: list[tuple[int, ...]]) -> float:
    pairs = [(a, b) for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)
