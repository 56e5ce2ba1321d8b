"""Examples drawn from store and plans and written in a format of the field, with masks that stay.

What is written is what a phase with `masking.static` trains on: every pass of its plans once, in the order of its
epochs, and beside it the held-out examples. So the files hold the same examples however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.files import make_folder, write_json
from bertwright.core.log import SILENT, Log
from bertwright.examples.batch import MicroBatch
from bertwright.examples.heldout_loader import Heldout
from bertwright.examples.instances import Instances, concatenate
from bertwright.examples.plan_loader import PlanLoader
from bertwright.formats.atomic_write import atomic_folder
from bertwright.formats.convert import NOTE
from bertwright.formats.format import Shape, Split
from bertwright.formats.names import Target, file_name, folder_name, shares

BLOCK = 2048
"""Most examples in memory at a time."""

Blocks = Callable[[int, int], Iterator[Instances]]


@dataclass(frozen=True)
class ExportSet:
    """The examples of one phase and where they go."""

    folder: str
    """Inside the destination."""
    name: str
    """Of the data set, as NVIDIA's file names have it."""
    loader: PlanLoader
    heldout: Heldout

    def splits(self) -> list[tuple[Split, int, Blocks]]:
        """Training and held-out examples: how many there are, and those between two numbers in blocks."""
        held = self.heldout
        return [
            ("training", self.loader.total, partial(drawn, self.loader)),
            ("test", len(held), lambda first, stop: map(instances, held.batches(BLOCK, first, stop))),
        ]


def export(
    sets: Sequence[ExportSet],
    destination: Path,
    target: Target,
    files: int,
    vocabulary: Sequence[str],
    log: Log = SILENT,
) -> dict[str, Any]:
    """Write every set into the new folder `destination`, its training examples in `files` files, or as many as the
    format allows (see `shares`), and its held-out examples in one; the note kept there.

    The destination appears when all of it is written.
    """
    total, done = sum(size for export_set in sets for _, size, _ in export_set.splits()), 0
    written: dict[str, Any] = {}
    with atomic_folder(destination) as draft:
        for export_set in sets:
            settings = export_set.loader.settings
            # By the settings, not by the examples: all files of a set have one shape.
            shape = Shape(settings.length, settings.masking.most(settings.length), static=True)
            for split, size, blocks in export_set.splits():
                folder = Path(export_set.folder) / folder_name(target, split)
                edges = shares(target, size, files if split == "training" else 1)
                for number, (first, stop) in enumerate(pairwise(edges)):
                    path = str(folder / file_name(target, export_set.name, split, number, len(edges) - 1))
                    written[path] = _write(draft / path, blocks(first, stop), target, shape, vocabulary)
                    done += written[path]
                    log.progress("convert", done, total, "examples")
                # Said, because the numbers would otherwise not add up.
                if edges[-1] < size:
                    why = f"{target.kind.upper()}'s loader refuses files of one size"
                    log.say(f"convert: {folder}: one of {size:,} examples is left out: {why}")
        if describe := target.format.describe:
            describe(draft)
        note = {"kind": target.kind, "examples": sum(written.values()), "left_out": total - done, "files": written}
        write_json(draft / NOTE, note)
    return note


def drawn(loader: PlanLoader, first: int, stop: int) -> Iterator[Instances]:
    """The examples `first` to `stop` of a phase in their order, in blocks as large as may be: files have them too.

    A block is drawn at once, except where the schedule of the masks goes over to another rate inside it.
    """
    settings = loader.settings
    changes = [settings.batches.before(step) for step in settings.masking.changes]
    # Not by the batch of the phase: with one of 8 it was 30 times as slow, and Parquet files 3 times as large.
    for begin in range(first, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        cuts = [begin, *(change for change in changes if begin < change < end), end]
        yield concatenate([instances(loader.examples(*cut)) for cut in pairwise(cuts)])


def instances(batch: MicroBatch) -> Instances:
    """A batch as finished examples."""
    cu_seqlens = batch.cu_seqlens.astype(np.int64)
    cu_predictions = np.searchsorted(batch.prediction_positions, cu_seqlens)
    in_second = np.concatenate([[0], np.cumsum(batch.segment_ids)])[cu_seqlens]
    begins = np.repeat(cu_seqlens[:-1], np.diff(cu_predictions))
    return Instances(
        token_ids=batch.token_ids.astype(np.int32),
        cu_seqlens=cu_seqlens,
        second=(np.diff(cu_seqlens) - np.diff(in_second)).astype(np.int32),
        positions=(batch.prediction_positions - begins).astype(np.int32),
        labels=batch.labels.astype(np.int32),
        cu_predictions=cu_predictions.astype(np.int64),
        # In a batch a sequence without a label has one of weight 0; in files it has none.
        next_sentence_labels=np.where(batch.sequence_weights > 0, batch.sequence_labels, -1).astype(np.int8),
    )


def _write(path: Path, blocks: Iterator[Instances], target: Target, shape: Shape, vocabulary: Sequence[str]) -> int:
    make_folder(path.parent)
    return target.format.write(path, blocks, shape, vocabulary)
