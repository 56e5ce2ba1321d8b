"""Finds equal rows in many files, in bounded memory, by keeping the smallest hashes (bottom-k sampling).

Shows whether the files of a set hold the same examples, or the same masks on different texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.rng import bits
from bertwright.examples.instances import Instances, Ints

Hashes = NDArray[np.uint64]

KEPT = 1 << 20
"""Hashes kept over all files (24 bytes each)."""


def row_hashes(values: NDArray[Any], cu: Ints) -> Hashes:
    """[N] one hash per row, of its values and their order."""
    inside = np.arange(cu[-1]) - np.repeat(cu[:-1], np.diff(cu))
    # Sums, because rows have any length; the hash of each value includes its position in the row.
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits(values, inside), dtype=np.uint64)])[cu]
    return np.diff(sums)


class Repeated(NamedTuple):
    """Of `sampled` distinct keys, `several` occur in several files, `differing` of these with different contents."""

    sampled: int
    several: int
    differing: int


class BottomK:
    """The smallest keys of each file, each with a content hash; a key is sampled in every file where it occurs."""

    def __init__(self, files: int) -> None:
        self._most = max(64, KEPT // max(files, 1))
        self._files: list[NDArray[np.uint64]] = []
        self._cut = np.uint64(np.iinfo(np.uint64).max)

    def begin_file(self) -> None:
        """Start the next file; rows added from now on belong to it."""
        self._files.append(np.zeros((2, 0), np.uint64))

    def add(self, keys: Hashes, contents: Hashes) -> None:
        """Add rows of the current file: their keys [N] and the hashes of their contents [N]."""
        kept = np.concatenate([self._files[-1], np.stack([keys, contents])[:, keys <= self._cut]], axis=1)
        _, first = np.unique(kept[0], return_index=True)
        self._files[-1] = kept[:, first[: self._most]]
        if len(first) > self._most:
            # Keys of this file above the cut are dropped, so keys above it are ignored in every file.
            self._cut = min(self._cut, self._files[-1][0, -1])

    def repeated(self) -> Repeated:
        """Count the keys that several files share."""
        numbers = np.repeat(np.arange(len(self._files)), [rows.shape[1] for rows in self._files])
        keys, contents = np.concatenate([*self._files, np.zeros((2, 0), np.uint64)], axis=1)
        kept = np.flatnonzero(keys <= self._cut)
        order = kept[np.argsort(keys[kept], kind="stable")]
        keys, contents, numbers = keys[order], contents[order], numbers[order]
        # The inverse of the first key differs from the key itself, so the first element always counts as a start.
        starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]) != 0)
        if not len(starts):
            return Repeated(0, 0, 0)
        several = np.minimum.reduceat(numbers, starts) != np.maximum.reduceat(numbers, starts)
        differing = several & (np.minimum.reduceat(contents, starts) != np.maximum.reduceat(contents, starts))
        return Repeated(len(starts), int(several.sum()), int(differing.sum()))


_TELLING = 8
"""Number of predictions from which equal positions in two examples are not a coincidence."""
_TELLING_WITH_TEXT = 4
"""The same for two examples of the same text."""
_SHARED = 0.001
"""Share of examples or masks repeated across shards above which a fault is reported."""
_SHARED_TEXTS = 0.05
"""The same for texts without masks: several passes over a small corpus repeat some."""


class Repetitions:
    """Hashes of the examples of `files` files, collected block by block; `static`: whether they have masks."""

    def __init__(self, files: int, static: bool) -> None:
        self.files: dict[Path, tuple[int, int]] = {}
        """Number of examples of each file, and a hash of them that does not depend on their order."""
        self._static = static
        self._examples, self._masks = BottomK(files), BottomK(files)

    def begin_file(self, file: Path) -> None:
        """Start `file`; examples added from now on belong to it."""
        self.files[file] = 0, 0
        self._examples.begin_file()
        self._masks.begin_file()

    def leave_out(self, file: Path) -> None:
        """Exclude `file`, the last one started, from comparisons of entire files; its examples stay in the sample."""
        del self.files[file]

    def add(self, block: Instances, originals: NDArray[np.int32]) -> None:
        """Add examples of the current file, with their ids [T] before masking."""
        contents = row_hashes(originals, block.cu_seqlens)
        predictions = np.diff(block.cu_predictions)
        telling, with_text = predictions >= _TELLING, predictions >= _TELLING_WITH_TEXT * self._static
        masks = row_hashes(block.positions, block.cu_predictions)
        self._masks.add(masks[telling], contents[telling])
        with_masks = contents ^ masks
        self._examples.add(with_masks[with_text], contents[with_text])
        # A sum, so that a reshuffled copy of a file still counts as the same file.
        whole = int(with_masks.sum(dtype=np.uint64))
        file, (examples, content) = self.files.popitem()
        self.files[file] = examples + len(block), (content + whole) % 2**64

    @property
    def empty(self) -> list[Path]:
        """The files without an example."""
        return [file for file, (examples, _) in self.files.items() if not examples]

    def faults(self) -> list[str]:
        """Return one sentence for each kind of repetition that exceeds chance."""
        faults, first = [], dict[tuple[int, int], Path]()
        for file, content in self.files.items():
            same = first.setdefault(content, file)
            # Empty files are reported separately.
            if same != file and content[0]:
                faults.append(f"{file.name} holds the same examples as {same.name}")
        examples, masks = self._examples.repeated(), self._masks.repeated()
        named, most = ("examples, masks and all,", _SHARED) if self._static else ("texts", _SHARED_TEXTS)
        # In a small set, a single repeated row may be chance, whatever its share.
        if examples.several > max(1, most * examples.sampled):
            faults.append(f"{examples.several / examples.sampled:.1%} of the {named} occur in several shards")
        # Equal masks on different texts come from a generator that has the same seed for every shard.
        if masks.differing > max(1, _SHARED * masks.sampled):
            share = masks.differing / masks.sampled
            faults.append(
                f"{share:.1%} of the masks occur in several shards on different texts: all shards used the same "
                "random seed"
            )
        return faults
