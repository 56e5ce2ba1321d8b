"""Whole-word and span masking restated for one sequence, with Python loops.

Words come in a random order; a word that would exceed the quota is passed over. A span begins at a word, is cut short
where its segment or the quota ends, and passed over where it meets a word that was chosen before.
"""

from tests.reference.masking import splitmix64

Word = list[int]
"""Positions of the pieces of a word."""


def words(tokens: list[int], a_count: int, continues: list[bool]) -> list[Word]:
    """The words of `[CLS] A [SEP] B [SEP]`, none of which crosses a special token."""
    found: list[Word] = []
    for position, token in enumerate(tokens):
        if position in (0, a_count + 1, len(tokens) - 1):
            continue
        if continues[token] and found and found[-1][-1] == position - 1:
            found[-1].append(position)
        else:
            found.append([position])
    return found


def choose(found: list[Word], key: int, quota: int, longest: int) -> list[int]:
    """The positions of the chosen words, rising."""
    order = sorted(range(len(found)), key=lambda w: splitmix64(key, found[w][0]) >> 11)
    chosen: set[int] = set()
    for first in order:
        left = quota - sum(len(found[w]) for w in chosen)
        span: list[int] = []
        for w in range(first, min(first + span_length(key, found[first][0], longest), len(found))):
            apart = span and found[w][0] != found[w - 1][-1] + 1
            if apart or sum(len(found[v]) for v in [*span, w]) > left:
                break
            span.append(w)
        if not chosen & set(span):
            chosen |= set(span)
    return sorted(position for w in chosen for position in found[w])


def span_length(key: int, position: int, longest: int) -> int:
    """A number of words from 1 to `longest`, with probabilities in proportion to 1, 1/2, 1/3, ..."""
    u = (splitmix64(key, (5 << 16) + position) >> 11) / 2**53
    total = sum(1 / n for n in range(1, longest + 1))
    reached = 0.0
    for n in range(1, longest + 1):
        reached += 1 / n / total
        if u < reached:
            return n
    return longest
