"""Statistics of a folder of examples, and the faults that they reveal.

The faults are those that public pipelines have produced: shards written twice (in the MLPerf training results, one
shuffle script never advanced its index), one random stream for all shards (create_pretraining_data.py gives every shard
the same seed), ids beyond the vocabulary, empty shards, missing parts, fewer files than ranks.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.examples.information import TELLING, one_label, unknown_words
from bertwright.examples.instances import Instances
from bertwright.formats.columns import MAX_LENGTH
from bertwright.formats.detect import FileSet, detect
from bertwright.formats.errors import ShardError
from bertwright.formats.known import format_of
from bertwright.formats.repetitions import Repetitions
from bertwright.formats.token_statistics import token_statistics
from bertwright.formats.vocabulary_fit import ENTRIES, Misplaced, SpecialIds, describe_misplaced

SAMPLE = 10_000
"""Number of examples, or documents, that `doubts` reads of a set."""
_SAMPLED_FILES = 8
"""Number of files, evenly spread over the set, that `doubts` reads from."""
_BINS = 8


def statistics(
    path: Path, vocabulary: Sequence[str] | None = None, limit: int | None = None, world: int = 1
) -> dict[str, Any]:
    """Return `{"path", "sets": [...], "unreadable": [...]}`: the statistics and `faults` (sentences) of each set of
    files in `path`, and a sentence for each damaged file in a folder of which no file can be read.

    `limit`: maximum number of examples (or documents) to read from each file. `world`: number of ranks that will share
    the files. `vocabulary` adds the unknown rate and the count of ids beyond it; LDDL files require it. Memory use is
    bounded. Damaged files are reported among the faults.
    """
    unreadable = list[ShardError]()
    sets = [_of_set(file_set, vocabulary, limit, world) for file_set in detect(path, unreadable)]
    return {"path": str(path), "sets": sets, "unreadable": [str(error) for error in unreadable]}


def doubts(file_set: FileSet, vocabulary: Sequence[str], pairs: bool) -> tuple[int, list[str]]:
    """Return how many examples (or documents) of a few files were read, up to `SAMPLE`, and a sentence for each thing
    in them that teaches a network nothing, or the wrong thing: special ids inside text, unknown words, and with `pairs`
    labels of one value, or none. Damaged files are skipped.
    """
    chosen = file_set.files[:: -(-len(file_set.files) // _SAMPLED_FILES)]
    some, limit = replace(file_set, files=chosen), max(1, SAMPLE // len(chosen))
    if file_set.documents:
        numbers = token_statistics(some, vocabulary, limit)
        return numbers["documents"], numbers["doubts"]
    tally = _read(some, vocabulary, limit)
    return int(tally.lengths.sum()), tally.doubts(pairs)


def _of_set(file_set: FileSet, vocabulary: Sequence[str] | None, limit: int | None, world: int) -> dict[str, Any]:
    if file_set.documents:
        numbers = token_statistics(file_set, vocabulary, limit)
        return numbers | {"faults": numbers["faults"] + numbers.pop("doubts")}
    tally = _read(file_set, vocabulary, limit)
    return tally.numbers() | {"faults": tally.faults(world) + tally.doubts()}


def _read(file_set: FileSet, vocabulary: Sequence[str] | None, limit: int | None) -> _Tally:
    tally = _Tally(file_set, vocabulary)
    for file in file_set.files:
        tally.repetitions.begin_file(file)
        try:
            # Pass no vocabulary unless reading needs it, so that ids beyond it are counted, not rejected.
            known = format_of(file_set.kind)
            blocks = known.read(file, vocabulary if known.reads_vocabulary else None)
            for block in _first(blocks, limit):
                tally.add(block)
        except ShardError as error:
            tally.leave_out(file, error)
    return tally


def _first(blocks: Iterator[Instances], limit: int | None) -> Iterator[Instances]:
    left = sys.maxsize if limit is None else limit
    while left > 0 and (block := next(blocks, None)) is not None:
        # The format determines the block size, so truncate the last block.
        yield block.take(slice(0, left))
        left -= len(block)


class _Tally:
    """Accumulates the counts of one set of files."""

    def __init__(self, file_set: FileSet, vocabulary: Sequence[str] | None) -> None:
        self.file_set = file_set
        self.vocabulary = vocabulary
        self.unk = None if vocabulary is None else vocabulary.index("[UNK]")
        self.mask = None if vocabulary is None else vocabulary.index("[MASK]")
        self.damaged = [str(error) for error in file_set.damaged]
        self.lengths = np.zeros(MAX_LENGTH + 1, np.int64)
        self.labels: Counter[int] = Counter()
        self.special = SpecialIds(vocabulary)
        self.misplaced = None if vocabulary is None else Misplaced([vocabulary.index(entry) for entry in ENTRIES])
        self.kept = self.predictions = self.unknown = self.beyond = self.largest = 0
        self.repetitions = Repetitions(len(file_set.files), file_set.shape.static)

    def leave_out(self, file: Path, error: ShardError) -> None:
        """Record that the file is damaged. What was already counted from it stays counted."""
        self.repetitions.leave_out(file)
        self.damaged.append(str(error))

    def add(self, block: Instances) -> None:
        originals = block.originals()
        self.special.add(block)
        if self.misplaced:
            self.misplaced.add(block)
        self.lengths += np.bincount(block.lengths, minlength=MAX_LENGTH + 1)
        self.labels.update(block.next_sentence_labels.tolist())
        self.predictions += len(block.labels)
        shown = block.token_ids[block.predicted]
        self.kept += int((shown == block.labels).sum())
        self.largest = max(self.largest, int(block.token_ids.max(initial=0)), int(originals.max(initial=0)))
        if self.vocabulary is not None:
            self.unknown += int((originals == self.unk).sum())
            self.beyond += sum(int((ids >= len(self.vocabulary)).sum()) for ids in (block.token_ids, block.labels))
        self.repetitions.add(block, originals)

    def numbers(self) -> dict[str, Any]:
        file_set, examples = self.file_set, int(self.lengths.sum())
        sizes = np.arange(len(self.lengths))
        tokens, longest = int(self.lengths @ sizes), int(sizes[self.lengths > 0].max(initial=0))
        # Files without padding do not state their length.
        room = max(file_set.shape.length or 0, longest)
        labelled = self.labels[0] + self.labels[1]
        return {
            "folder": str(file_set.folder),
            "split": "training" if file_set.trains else "test",
            "kind": file_set.kind,
            "holds": "examples",
            "files": len(file_set.files),
            "incomplete": file_set.incomplete,
            "examples": examples,
            "tokens": tokens,
            "length": room,
            "fill": _share(tokens, examples * room),
            "lengths": self._histogram(room),
            "random_next": _share(self.labels[1], labelled),
            "mask_rate": _share(self.predictions, tokens) if file_set.shape.static else None,
            "masks": self._masks() if file_set.shape.static else None,
            "largest_id": self.largest,
            "special_inside": None if self.misplaced is None else dict(self.misplaced.inside),
            "special_labels": None if self.misplaced is None else dict(self.misplaced.labels),
            "unknown_rate": None if self.vocabulary is None else _share(self.unknown, tokens),
        }

    def _histogram(self, room: int) -> dict[str, int]:
        """Return the number of examples in each eighth of the maximum length."""
        edges = sorted({-(-room * (number + 1) // _BINS) for number in range(_BINS)})
        sums = np.cumsum(self.lengths)
        counts = np.diff([0, *(int(sums[edge]) for edge in edges)]).tolist()
        return {f"up to {edge:,}": count for edge, count in zip(edges, counts, strict=True)}

    def _masks(self) -> dict[str, Any]:
        """Return what is at predicted positions; without a vocabulary, [MASK] is assumed to be the most common id."""
        commonest = max(self.special.shown, key=lambda number: self.special.shown[number], default=None)
        mask = commonest if self.mask is None else self.mask
        masked = self.special.shown[mask] if mask is not None else 0
        replaced = self.predictions - masked - self.kept
        shares = {"mask": masked, "kept": self.kept, "replaced": replaced}
        return {"mask_id": mask} | {name: _share(count, self.predictions) for name, count in shares.items()}

    def faults(self, world: int) -> list[str]:
        faults = [f"damaged: {message}" for message in self.damaged]
        if self.file_set.incomplete:
            faults.append(f"only {self.file_set.incomplete} were found")
        if self.file_set.mixed:
            faults.append(
                f"only some files have masks: {self.file_set.mixed[0].name} is unlike {self.file_set.files[0].name}"
            )
        faults += [f"{file.name} is empty" for file in self.repetitions.empty]
        if 0 < len(self.repetitions.files) < world:
            faults.append(
                f"{len(self.repetitions.files):,} files for {world:,} ranks: some ranks would read the same file"
            )
        if self.beyond and self.vocabulary is not None:
            size = len(self.vocabulary)
            faults.append(
                f"{self.beyond:,} ids are outside the vocabulary of {size:,} entries (the largest is {self.largest:,})"
            )
        return faults + self.special.faults() + self.repetitions.faults()

    def doubts(self, pairs: bool | None = None) -> list[str]:
        """Return a sentence for each thing in the examples that teaches a network nothing, or the wrong thing; `pairs`:
        whether it learns from the labels of pairs, None if that is not known."""
        said = [] if self.misplaced is None else describe_misplaced(self.misplaced.inside, self.misplaced.labels)
        if pairs is not False:
            said += one_label(self.labels[0] + self.labels[1], self.labels[1])
        if pairs and self.lengths.sum() >= TELLING and not self.labels[0] + self.labels[1]:
            said.append("no example has a next-sentence label, so only masked words are learned from")
        if self.file_set.shape.static and self.lengths.sum() >= TELLING and not self.predictions:
            said.append("no example has a prediction, so there is no masked word to learn from")
        if self.predictions >= TELLING and self.kept == self.predictions:
            said.append("every predicted token is shown unmasked, so predicting it teaches nothing")
        return [*said, *unknown_words(self.unknown, int(self.lengths @ np.arange(len(self.lengths))))]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
