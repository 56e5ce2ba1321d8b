"""Dropout masks that are computed from a counter, so that a backward pass computes them again instead of reading them.

Philox (Salmon et al. 2011) with ten rounds takes about 80 integer instructions, more than an attention weight costs
otherwise. So it draws two words for each row, and a mixer of ten instructions combines them with the column: the
constants of lowbias32 (Wellons 2018), with the second word between its two products, so that two rows have the same
mask only if both words agree. The mask depends on the seed, the row and the column alone, not on blocks or the GPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_VALUES = 1 << 31
_WORD = 0xFFFFFFFF


class Mask(NamedTuple):
    """Which elements a dropout keeps."""

    seed: Tensor
    """A tensor of one int64, a scalar for kernels; not read if `p` is 0."""
    p: float
    """The probability with which an element is dropped, in [0, 1)."""


def draw_mask(p: float, device: torch.device) -> Mask:
    """Draw the seed of a mask from torch's generator of the device; the host does not wait for it."""
    if not p:
        return Mask(torch.empty(0, device=device, dtype=torch.int64), p)
    return Mask(torch.randint(_VALUES, (1,), device=device, dtype=torch.int64), p)


def threshold_of(p: float) -> tuple[int, float]:
    """Return the number below which an element is dropped, of 2^31, and the factor of kept elements."""
    threshold = round(p * _VALUES)
    return threshold, _VALUES / (_VALUES - threshold)


@triton.jit
def row_words(seed, rows, group):
    """The two words of each of the `rows` (int32) of a `group`."""
    first, second, _, _ = tl.philox(seed, rows.to(tl.uint32), group.to(tl.uint32), 0, 0)
    return first, second


@triton.jit
def is_kept(first, second, columns, threshold):
    """Whether each element is kept; words and `columns` are broadcast against each other."""
    x = first + columns.to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = x ^ second
    x = (x ^ (x >> 15)) * 0x846CA68B
    return (x >> 1) >= threshold.to(tl.uint32)  # the highest bits are mixed best


def plain_factors(mask: Mask, rows: Tensor, group: int, columns: Tensor) -> Tensor:
    """The same in plain torch: the factors [rows, columns] of a mask, 0 where an element is dropped."""
    first, second = (word[:, None] for word in _philox(int(mask.seed), rows.long(), group))
    x = (first + columns.long()) & _WORD
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _WORD
    x = x ^ second
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _WORD
    threshold, factor = threshold_of(mask.p)
    return ((x >> 1) >= threshold) * factor


def _philox(seed: int, counter: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """The first two words of Philox4x32-10 for the counters (`counter`, `group`, 0, 0)."""
    c0, c1, c2, c3 = counter, torch.full_like(counter, group), torch.zeros_like(counter), torch.zeros_like(counter)
    low, high = seed & _WORD, (seed >> 32) & _WORD
    for _ in range(10):
        # A product of two words may exceed 63 bits: its bits are right, and those of the sign are cut off.
        one, other = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (other >> 32) & _WORD ^ c1 ^ low, other & _WORD, (one >> 32) & _WORD ^ c3 ^ high, one & _WORD
        low, high = (low + 0x9E3779B9) & _WORD, (high + 0xBB67AE85) & _WORD
    return c0, c1
