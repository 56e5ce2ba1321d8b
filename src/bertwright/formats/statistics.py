"""What a folder of examples holds, in numbers, and the faults that can be seen in it.

The faults are those that public pipelines have produced: shards written twice (MLPerf training results, one shuffle
script never advanced its index), one random stream for all shards (create_pretraining_data.py gives every shard the
same seed), ids beyond the vocabulary, empty shards, missing parts, fewer files than ranks.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.examples.instances import Instances
from bertwright.formats.errors import ShardError
from bertwright.formats.instance_checks import MAX_LENGTH
from bertwright.formats.known import format_of
from bertwright.formats.recognise import Found, recognise
from bertwright.formats.sketch import Sketch, row_hashes
from bertwright.formats.special_ids import SpecialIds
from bertwright.formats.token_statistics import token_statistics

_BINS = 8
_TELLING = 8
"""Predictions from which equal positions of two examples are no coincidence."""
_TELLING_WITH_TEXT = 4
"""The same for two examples of one text."""
_SHARED = 0.001
"""Share of examples or masks repeated across shards that is called a fault."""
_SHARED_TEXTS = 0.05
"""The same for texts whose masks are not drawn yet: several passes over little text repeat some."""


def statistics(
    path: Path, vocabulary: Sequence[str] | None = None, limit: int | None = None, world: int = 1
) -> dict[str, Any]:
    """`{"path", "sets": [...]}`: numbers and `faults` (sentences) of each set of files in `path`.

    `limit`: most examples (or documents) read of each file. `world`: ranks that will share the files. `vocabulary` adds
    the unknown rate and ids beyond it; LDDL files need it. Memory is bounded. Damaged files are among the faults.
    """
    return {"path": str(path), "sets": [_of_set(found, vocabulary, limit, world) for found in recognise(path)]}


def _of_set(found: Found, vocabulary: Sequence[str] | None, limit: int | None, world: int) -> dict[str, Any]:
    if found.documents:
        return token_statistics(found, vocabulary, limit)
    tally = _Tally(found, vocabulary)
    for file in found.files:
        tally.begin(file)
        try:
            # Ids are to be counted, not refused, where they can be read without the vocabulary.
            known = format_of(found.kind)
            blocks = known.read(file, vocabulary if known.reads_vocabulary else None)
            for block in _first(blocks, limit):
                tally.add(block)
        except ShardError as error:
            tally.leave_out(file, error)
    return tally.numbers() | {"faults": tally.faults(world)}


def _first(blocks: Iterator[Instances], limit: int | None) -> Iterator[Instances]:
    left = sys.maxsize if limit is None else limit
    while left > 0 and (block := next(blocks, None)) is not None:
        yield block.take(slice(0, left))
        left -= len(block)


class _Tally:
    """Counts of one set of files."""

    def __init__(self, found: Found, vocabulary: Sequence[str] | None) -> None:
        self.found = found
        self.vocabulary = vocabulary
        self.unk = None if vocabulary is None else vocabulary.index("[UNK]")
        self.mask = None if vocabulary is None else vocabulary.index("[MASK]")
        self.damaged = [str(error) for error in found.damaged]
        self.lengths = np.zeros(MAX_LENGTH + 1, np.int64)
        self.labels: Counter[int] = Counter()
        self.special = SpecialIds(vocabulary)
        self.kept = self.predictions = self.unknown = self.beyond = self.largest = 0
        self.files: dict[Path, tuple[int, int]] = {}
        """Examples of each file, and a hash of them that does not depend on their order."""
        self.examples, self.masks = Sketch(len(found.files)), Sketch(len(found.files))

    def begin(self, file: Path) -> None:
        self.files[file] = 0, 0
        self.examples.begin_file()
        self.masks.begin_file()

    def leave_out(self, file: Path, error: ShardError) -> None:
        """The file turned out to be damaged; what was counted of it stays counted."""
        del self.files[file]
        self.damaged.append(str(error))

    def add(self, block: Instances) -> None:
        originals = block.originals()
        self.special.add(block)
        self.lengths += np.bincount(block.lengths, minlength=MAX_LENGTH + 1)
        self.labels.update(block.next_sentence_labels.tolist())
        self.predictions += len(block.labels)
        shown = block.token_ids[block.predicted]
        self.kept += int((shown == block.labels).sum())
        self.largest = max(self.largest, int(block.token_ids.max(initial=0)), int(originals.max(initial=0)))
        if self.vocabulary is not None:
            self.unknown += int((originals == self.unk).sum())
            self.beyond += sum(int((ids >= len(self.vocabulary)).sum()) for ids in (block.token_ids, block.labels))
        contents = row_hashes(originals, block.cu_seqlens)
        predictions = np.diff(block.cu_predictions)
        telling, with_text = predictions >= _TELLING, predictions >= _TELLING_WITH_TEXT * self.found.shape.static
        masks = row_hashes(block.positions, block.cu_predictions)
        self.masks.add(masks[telling], contents[telling])
        with_masks = contents ^ masks
        self.examples.add(with_masks[with_text], contents[with_text])
        whole = int(with_masks.sum(dtype=np.uint64))
        file, (examples, content) = self.files.popitem()
        self.files[file] = examples + len(block), (content + whole) % 2**64

    def numbers(self) -> dict[str, Any]:
        found, examples = self.found, int(self.lengths.sum())
        sizes = np.arange(len(self.lengths))
        tokens, longest = int(self.lengths @ sizes), int(sizes[self.lengths > 0].max(initial=0))
        room = max(found.shape.length or 0, longest)
        labelled = self.labels[0] + self.labels[1]
        return {
            "folder": str(found.folder),
            "split": found.split,
            "kind": found.kind,
            "holds": "examples",
            "files": len(found.files),
            "incomplete": found.incomplete,
            "examples": examples,
            "tokens": tokens,
            "length": room,
            "fill": _share(tokens, examples * room),
            "lengths": self._histogram(room),
            "random_next": _share(self.labels[1], labelled),
            "mask_rate": _share(self.predictions, tokens) if found.shape.static else None,
            "masks": self._masks() if found.shape.static else None,
            "largest_id": self.largest,
            "unknown_rate": None if self.vocabulary is None else _share(self.unknown, tokens),
        }

    def _histogram(self, room: int) -> dict[str, int]:
        """Examples up to each eighth of the room."""
        edges = sorted({-(-room * (number + 1) // _BINS) for number in range(_BINS)})
        sums = np.cumsum(self.lengths)
        counts = np.diff([0, *(int(sums[edge]) for edge in edges)]).tolist()
        return {f"up to {edge:,}": count for edge, count in zip(edges, counts, strict=True)}

    def _masks(self) -> dict[str, Any]:
        """What stands at predicted positions; without a vocabulary the commonest id there is taken for [MASK]."""
        commonest = max(self.special.shown, key=lambda number: self.special.shown[number], default=None)
        mask = commonest if self.mask is None else self.mask
        masked = self.special.shown[mask] if mask is not None else 0
        replaced = self.predictions - masked - self.kept
        shares = {"mask": masked, "kept": self.kept, "replaced": replaced}
        return {"mask_id": mask} | {name: _share(count, self.predictions) for name, count in shares.items()}

    def faults(self, world: int) -> list[str]:
        found = [f"damaged: {message}" for message in self.damaged]
        if self.found.incomplete:
            found.append(f"only {self.found.incomplete} are there")
        if self.found.mixed:
            found.append(f"only some files have masks: {self.found.mixed[0].name} is unlike {self.found.files[0].name}")
        found += [f"{file.name} is empty" for file, (count, _) in self.files.items() if not count]
        if 0 < len(self.files) < world:
            found.append(f"{len(self.files):,} files for {world:,} ranks: some ranks would read the same file")
        if self.beyond and self.vocabulary is not None:
            size = len(self.vocabulary)
            found.append(f"{self.beyond:,} ids lie beyond the vocabulary of {size:,} (the largest is {self.largest:,})")
        return found + self.special.faults() + self._repetitions()

    def _repetitions(self) -> list[str]:
        found, first = [], dict[tuple[int, int], Path]()
        for file, content in self.files.items():
            same = first.setdefault(content, file)
            if same != file and content[0]:
                found.append(f"{file.name} holds the same examples as {same.name}")
        examples, masks = self.examples.repeated(), self.masks.repeated()
        named, most = ("examples, masks and all,", _SHARED) if self.found.shape.static else ("texts", _SHARED_TEXTS)
        if examples.several > max(1, most * examples.sampled):
            found.append(f"{_share(examples.several, examples.sampled):.1%} of the {named} occur in several shards")
        if masks.differing > max(1, _SHARED * masks.sampled):
            share = _share(masks.differing, masks.sampled)
            found.append(
                f"{share:.1%} of the masks occur in several shards on different texts: one random stream for all"
            )
        return found


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
