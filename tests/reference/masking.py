"""Masking restated for one sequence, with Python integers and loops.

The counter hash is SplitMix64 written out again, so that this chapter shares no line with what it checks.
"""

from dataclasses import dataclass

BITS = (1 << 64) - 1


def splitmix64(key: int, counter: int) -> int:
    """Output number `counter` of the generator seeded with `key` (Steele, Lea, Flood 2014)."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
    return z ^ (z >> 31)


def front(key: int, side: str, number: int) -> bool:
    """Truncation's coin for the `number`-th dropped token of a side: bit after bit of the hash; 1 is the front."""
    counter = ({"a": 3, "b": 4}[side] << 16) + number // 64
    return bool(splitmix64(key, counter) >> (number % 64) & 1)


@dataclass
class Masked:
    tokens: list[int]
    positions: list[int]
    labels: list[int]


def mask(
    tokens: list[int], a_count: int, key: int, rate: float, most: int, mask_id: int, replacements: list[int]
) -> Masked:
    """Mask `[CLS] A [SEP] B [SEP]` or `[CLS] A [SEP]` with `a_count` tokens in A."""
    last = len(tokens) - 1
    candidates = [p for p in range(len(tokens)) if p not in (0, a_count + 1, last)]
    number = min(most, max(1, round(len(tokens) * rate)), len(candidates))
    # A shuffle is a sort by random numbers. The low 16 bits of a hash give way to the position, which breaks ties.
    candidates.sort(key=lambda p: (splitmix64(key, p) >> 16, p))
    result = Masked(list(tokens), sorted(candidates[:number]), [])
    for p in result.positions:
        result.labels.append(tokens[p])
        action = (splitmix64(key, (1 << 16) + p) >> 11) / 2**53
        if action < 0.8:
            result.tokens[p] = mask_id
        elif action >= 0.9:
            index = ((splitmix64(key, (2 << 16) + p) >> 32) * len(replacements)) >> 32
            result.tokens[p] = replacements[index]
    return result
