"""What the C library does with the memory of freed tensors on a CPU: keep it, which is fast, or return it, which takes
less."""

from __future__ import annotations

import ctypes
import sys

# From malloc.h of the GNU C library; the values are part of its binary interface.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4
_NEVER = 2**31 - 1
_AHEAD = 1 << 26
_MANY = 65_536
"""The library's own limit of blocks outside the heap."""
_LARGE = 4 << 20
"""Bytes of the blocks that are returned one by one. With smaller ones, a step takes longer and its peak is the same."""


def keep_freed_memory() -> bool:
    """Make the C library keep freed memory in the process for later tensors; returns whether it supports that.

    The GNU library returns blocks above 32 MB to the system immediately and requests them again, zeroed page by page,
    at the next step: with a vocabulary of 30,522, that is half the time of the loss. The memory kept is about that of
    the largest step.
    """
    return _set((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _AHEAD))


def return_freed_memory() -> bool:
    """Make the C library return the memory of large freed tensors immediately; returns whether it supports that.

    With activation checkpointing, whose layers are computed once more between tensors that stay, the memory kept
    otherwise grows to twice what is in use at the peak (docs/results.md).
    """
    return _set((_MMAP_MAX, _MANY), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE), (_TOP_PAD, 0))


def _set(*wanted: tuple[int, int]) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, value) == 1 for option, value in wanted)
