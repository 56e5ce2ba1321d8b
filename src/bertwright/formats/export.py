"""Writes the contents of an examples artifact in an established format.

These are examples draw from store and plans, with static masks, or the training documents of the token store. The
examples are those that a phase with `masking.static` trains on: every pass of its plans once, in the order of its
epochs, and the held-out examples in separate files. They do not depend on the number of files.
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
from bertwright.examples.instances import Instances, concatenate
from bertwright.examples.loader import Heldout, Loader
from bertwright.examples.store import Store
from bertwright.formats.convert import NOTE
from bertwright.formats.format import DocumentFormat, Shape, Split, TokenDocuments
from bertwright.formats.target import Target, atomic_folder, file_name, folder_name, shares

BLOCK = 2048
"""Maximum number of examples in memory at a time."""

Blocks = Callable[[int, int], Iterator[Instances]]


@dataclass(frozen=True)
class ExportSet:
    """The examples of one phase, and where to write them."""

    folder: str
    """Path inside the destination."""
    name: str
    """Name of the dataset, as in NVIDIA's file names."""
    loader: Loader
    heldout: Heldout

    def splits(self) -> list[tuple[Split, int, Blocks]]:
        """Training and held-out splits: their sizes, and a function that yields a range of examples in blocks."""
        held = self.heldout
        return [
            ("training", self.loader.total, partial(draw, self.loader)),
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
    """Write every set into the new folder `destination`; returns the note stored there.

    The training examples of a set go into `files` files, or as many as the format allows (see `shares`), its held-out
    examples into one. The destination appears only once everything is written.
    """
    total, done = sum(size for export_set in sets for _, size, _ in export_set.splits()), 0
    written: dict[str, Any] = {}
    with atomic_folder(destination) as draft:
        for export_set in sets:
            settings = export_set.loader.settings
            # From the settings, not from the examples: all files of a set have the same shape.
            shape = Shape(settings.length, settings.masking.most(settings.length), static=True)
            for split, size, blocks in export_set.splits():
                folder = Path(export_set.folder) / folder_name(target, split)
                edges = shares(target, size, files if split == "training" else 1)
                for number, (first, stop) in enumerate(pairwise(edges)):
                    path = str(folder / file_name(target, export_set.name, split, number, len(edges) - 1))
                    make_folder((draft / path).parent)
                    written[path] = target.format.write(draft / path, blocks(first, stop), shape, vocabulary)
                    done += written[path]
                    log.progress("convert", done, total, "examples")
                # Log it, because otherwise the numbers would not add up.
                if edges[-1] < size:
                    why = f"{target.kind.upper()}'s loader rejects files of one size"
                    log.say(f"convert: {folder}: one of {size:,} examples is dropped: {why}")
        if describe := target.format.describe:
            describe(draft)
        note = {"kind": target.kind, "examples": sum(written.values()), "left_out": total - done, "files": written}
        write_json(draft / NOTE, note)
    return note


def draw(loader: Loader, first: int, stop: int) -> Iterator[Instances]:
    """Yield the examples `first` to `stop` of a phase in order, in blocks as large as possible.

    File formats keep the blocks, so larger ones make smaller files. A block is draw in one call unless the mask
    schedule changes its rate within the block.
    """
    settings = loader.settings
    changes = [settings.batches.before(step) for step in settings.masking.changes]
    # Not in batches of the phase: with a batch of 8, this was 30 times slower and Parquet files were 3 times larger.
    for begin in range(first, stop, BLOCK):
        end = min(begin + BLOCK, stop)
        cuts = [begin, *(change for change in changes if begin < change < end), end]
        yield concatenate([instances(loader.batch(*cut)) for cut in pairwise(cuts)])


def instances(batch: MicroBatch) -> Instances:
    """Convert a batch to finished examples."""
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
        # In a batch, a sequence without a label has one of weight 0; in files it has none (-1).
        next_sentence_labels=np.where(batch.sequence_weights > 0, batch.sequence_labels, -1).astype(np.int8),
    )


_AT_ONCE = 4096
"""Number of documents in memory at a time."""


def export_documents(
    store: Store, destination: Path, target: DocumentFormat, name: str, files: int = 0, log: Log = SILENT
) -> dict[str, Any]:
    """Write the documents in order into the new folder `destination`; returns the note stored there.

    Writes `files` files with about the same number of documents each or, with 0, one file per corpus shard; files that
    would be empty are omitted. A sentence of more than 65,535 tokens is split into several, as in the store.
    """
    total, starts = len(store.hashes), store.starts
    # A shard ends where a document ends, so its end in tokens is found among the document starts.
    edges = [total * i // files for i in range(files + 1)] if files else np.searchsorted(starts, store.shard_tokens)
    assert target.write, f"{target.kind} can only be read, not written"
    written: dict[str, int] = {}
    with atomic_folder(destination) as draft:
        # `unique`, because a shard whose documents are all held out would become an empty file.
        for number, (first, stop) in enumerate(pairwise(np.unique(edges).tolist())):
            file = f"{name}_{number:05}{target.suffix}"
            written[file] = target.write(draft / file, _blocks(store, first, stop), store.vocabulary.size)
            log.progress("convert", stop, total, "documents")
        note = {"kind": target.kind, "documents": total, "vocabulary": store.vocabulary.hash, "files": written}
        write_json(draft / NOTE, note)
    return note


def _blocks(store: Store, first: int, stop: int) -> Iterator[TokenDocuments]:
    for begin in range(first, stop, _AT_ONCE):
        end = min(begin + _AT_ONCE, stop)
        bounds = store.documents[begin : end + 1].astype(np.int64)
        yield TokenDocuments(
            store.tokens[int(store.starts[begin]) : int(store.starts[end])],
            store.sentences[bounds[0] : bounds[-1]].astype(np.int64),
            np.diff(bounds),
        )
