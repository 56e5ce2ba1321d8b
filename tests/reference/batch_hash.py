"""The hash of a batch restated for lists of sequences, one number at a time.

SplitMix64: Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators", fig. 17.
"""

import struct
from dataclasses import dataclass, field

WORD = 2**64


@dataclass
class Sequence:
    """What training sees of one sequence."""

    tokens: list[tuple[int, int, int]]
    """(id, position, segment) of each."""
    predictions: list[tuple[int, int, float]] = field(default_factory=list)
    """(index into `tokens`, label, weight) of each."""
    next_sentence: tuple[int, float] = (0, 0.0)
    """Label and weight."""


def batch_hash(sequences: list[Sequence]) -> str:
    """The hexadecimal digits; sequences without a weight are padding."""
    return f"{sum(sequence_hash(each) for each in sequences if has_weight(each)) % WORD:016x}"


def has_weight(sequence: Sequence) -> bool:
    return sequence.next_sentence[1] != 0 or any(weight != 0 for _, _, weight in sequence.predictions)


def sequence_hash(sequence: Sequence) -> int:
    tokens = [splitmix(0, id * 2**32 + position * 2**8 + segment) for id, position, segment in sequence.tokens]
    predictions = [splitmix(tokens[i], weighted(label, weight)) for i, label, weight in sequence.predictions if weight]
    return splitmix(sum(tokens) + sum(predictions), weighted(*sequence.next_sentence))


def weighted(label: int, weight: float) -> int:
    (bits,) = struct.unpack("<I", struct.pack("<f", weight))
    return label * 2**32 + bits if weight else 0


def splitmix(seed: int, number: int) -> int:
    """Output `number`, from 0, of the generator seeded with `seed`."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) % WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31
