"""A counter-based hash for every random decision on the data path: no generator objects, no state to save.

The hash is SplitMix64 (Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators", fig. 17):
`bits(key, i)` is output number i of the generator seeded with `key`, so the published test vectors of
SplitMix64 are test vectors of this module. Because the i-th number is computed without the ones before it,
a decision is a pure function of its coordinates: (seed, phase, epoch, row, position).
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_ONE, _S11, _S27, _S30, _S31, _S32 = (np.uint64(n) for n in (1, 11, 27, 30, 31, 32))
_TO_UNIT = 2.0**-53

Bits = NDArray[np.uint64]


def key(*parts: int | str) -> int:
    """A 64-bit key for a named stream, e.g. `key(seed, "mask", phase)`: the first 8 bytes of a BLAKE2b hash."""
    # The type is hashed with the value: key(1) and key("1") are different streams.
    text = "\x1f".join([f"{type(part).__name__}:{part}" for part in parts])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def fold(key: ArrayLike, counter: ArrayLike) -> Bits:
    """One new key for each (key, counter) pair; both broadcast. The same function as `bits`, named for this use."""
    return bits(key, counter)


def bits(key: ArrayLike, counter: ArrayLike) -> Bits:
    """64 random bits for each (key, counter) pair; both broadcast as uint64 arrays."""
    # At least one dimension: arrays wrap around silently, scalars warn about it.
    z = (np.atleast_1d(_u64(counter)) + _ONE) * _GOLDEN + _u64(key)
    z ^= z >> _S30
    z *= _MIX1
    z ^= z >> _S27
    z *= _MIX2
    z ^= z >> _S31
    return z


def uniform(key: ArrayLike, counter: ArrayLike) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) with 53 bits; key and counter broadcast, as in `bits`."""
    return unit_interval(bits(key, counter))


def unit_interval(bits: Bits) -> NDArray[np.float64]:
    """Random bits as uniform numbers in [0, 1), of the same shape and order."""
    # A float64 holds 53 bits exactly, so no number is rounded up to 1.
    return (bits >> _S11).astype(np.float64) * _TO_UNIT


def below(key: ArrayLike, counter: ArrayLike, n: ArrayLike) -> NDArray[np.int64]:
    """Uniform integers in [0, n) for 1 <= n <= 2^32: the high half of a 32 x 32 bit product (bias at most n / 2^32).

    Key, counter and n broadcast.
    """
    return ((bits(key, counter) >> _S32) * _u64(n) >> _S32).astype(np.int64)


def _u64(value: ArrayLike) -> Bits:
    return np.asarray(value, dtype=np.uint64)
