"""What the names of files say about files that are missing: `-of-500`, or a gap in their numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

_OF = re.compile(r"[-_]of[-_]([0-9]+)")
_NUMBER = re.compile(r"(.*?)([0-9]+)(\D*)")
"""The last number of a name without its ending, with what is before and after it."""


def parts_of(files: Sequence[Path]) -> int | None:
    """Return the number of files that there should be, if their names end in `-of-<number>`."""
    return max((int(named[1]) for file in files if (named := _OF.search(file.name))), default=None)


def gaps(files: Sequence[Path], beside: Iterable[Path]) -> tuple[int, ...]:
    """Return the numbers, in order, that are missing between those of `files` and of the files `beside` them, whose
    names differ only in the last number.

    Empty if more are missing than there are: such numbers are dates or sizes.
    """
    numbers = defaultdict[tuple[Path, str, str], set[int]](set)
    for file in (*files, *beside):
        series, number = _numbered(file)
        numbers[series].add(number)
    missing = set[int]()
    for series in {_numbered(file)[0] for file in files}:
        there = numbers[series]
        if max(there) - min(there) < 2 * len(there):
            missing |= {*range(min(there), max(there))} - there
    return tuple(sorted(missing))


def _numbered(file: Path) -> tuple[tuple[Path, str, str], int]:
    """Return what the names of a series have in common, and the number of the file in it; 0 without a number."""
    before, number, after = named.groups() if (named := _NUMBER.fullmatch(file.stem)) else (file.stem, "0", "")
    return (file.parent, before, after + file.suffix), int(number)
