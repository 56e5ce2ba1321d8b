"""Statistics of a folder of examples or tokenised documents, and the faults that they reveal.

The faults are those that public pipelines have produced: shards written twice (in the MLPerf training results, one
shuffle script never advanced its index), one random stream for all shards (create_pretraining_data.py gives every shard
the same seed), ids beyond the vocabulary, empty shards, missing parts, fewer files than ranks.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.examples.information import TELLING, one_label, unknown_words
from bertwright.examples.instances import Instances, ends
from bertwright.formats.columns import MAX_LENGTH
from bertwright.formats.detect import FileSet, detect, open_documents
from bertwright.formats.errors import ShardError
from bertwright.formats.format import TokenDocuments
from bertwright.formats.known import format_of
from bertwright.formats.repetitions import BottomK, Repetitions, row_hashes
from bertwright.formats.vocabulary_fit import ENTRIES, Misplaced, SpecialIds, describe_misplaced

SAMPLE = 10_000
"""Number of examples, or documents, that `doubts` reads of a set."""
_SAMPLED_FILES = 8
"""Number of files, evenly spread over the set, that `doubts` reads from."""
_BINS = 8
_LENGTHS = (8, 16, 32, 64, 128, 256, 512)
_AT_ONCE = 1 << 20
"""Approximate number of tokens read at a time."""
_SHARED = 0.001
"""Share of documents in several files above which a fault is reported."""


def statistics(
    path: Path, vocabulary: Sequence[str] | None = None, limit: int | None = None, world: int = 1
) -> dict[str, Any]:
    """Return `{"path", "sets": [...], "unreadable": [...]}`: the statistics and `faults` (sentences) of each set of
    files in `path`, and a sentence for each damaged file in a folder of which no file can be read.

    `limit`: maximum number of examples (or documents) to read from each file. `world`: number of ranks that will share
    the files. `vocabulary` adds the unknown rate and the count of ids beyond it; LDDL files require it. Memory use is
    bounded. Damaged files are reported among the faults.
    """
    unreadable, sets = list[ShardError](), []
    for file_set in detect(path, unreadable):
        tally = _read(file_set, vocabulary, limit)
        sets.append(tally.numbers() | {"faults": tally.faults(world) + tally.doubts()})
    return {"path": str(path), "sets": sets, "unreadable": [str(error) for error in unreadable]}


def doubts(file_set: FileSet, vocabulary: Sequence[str], pairs: bool) -> tuple[int, list[str]]:
    """Return how many examples (or documents) of a few files were read, up to `SAMPLE`, and a sentence for each thing
    in them that teaches a network nothing, or the wrong thing: special ids inside text, unknown words, and with `pairs`
    labels of one value, or none. Damaged files are skipped.
    """
    chosen = file_set.files[:: -(-len(file_set.files) // _SAMPLED_FILES)]
    tally = _read(replace(file_set, files=chosen), vocabulary, max(1, SAMPLE // len(chosen)))
    return tally.read, tally.doubts(pairs)


def _read(file_set: FileSet, vocabulary: Sequence[str] | None, limit: int | None) -> _ExampleTally | _DocumentTally:
    most = sys.maxsize if limit is None else limit
    return (_read_documents if file_set.documents else _read_examples)(file_set, vocabulary, most)


def _read_examples(file_set: FileSet, vocabulary: Sequence[str] | None, most: int) -> _ExampleTally:
    tally = _ExampleTally(file_set, vocabulary)
    for file in file_set.files:
        tally.repetitions.begin_file(file)
        try:
            # Pass no vocabulary unless reading needs it, so that ids beyond it are counted, not rejected.
            known, remaining = format_of(file_set.kind), most
            blocks = known.read(file, vocabulary if known.reads_vocabulary else None)
            while remaining > 0 and (block := next(blocks, None)) is not None:
                # The format determines the block size, so truncate the last block.
                tally.add(block.take(slice(0, remaining)))
                remaining -= len(block)
        except ShardError as error:
            tally.leave_out(file, error)
    return tally


def _read_documents(file_set: FileSet, vocabulary: Sequence[str] | None, most: int) -> _DocumentTally:
    tally = _DocumentTally(file_set, vocabulary)
    for file in file_set.files:
        tally.texts.begin_file()
        try:
            documents = open_documents(file, file_set.kind)
            for first, stop in documents.pieces(_AT_ONCE):
                if first < most:
                    tally.add(documents.read(first, min(stop, most)))
        except ShardError as error:
            tally.damaged.append(str(error))
    return tally


class _ExampleTally:
    """Accumulates the counts of a set of files of examples."""

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

    @property
    def read(self) -> int:
        """Number of examples read."""
        return int(self.lengths.sum())

    def numbers(self) -> dict[str, Any]:
        file_set, examples = self.file_set, self.read
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
        faults += _beyond(self.beyond, self.vocabulary, self.largest)
        return faults + self.special.faults() + self.repetitions.faults()

    def doubts(self, pairs: bool | None = None) -> list[str]:
        """Return a sentence for each thing in the examples that teaches a network nothing, or the wrong thing; `pairs`:
        whether it learns from the labels of pairs, None if that is not known."""
        sentences = [] if self.misplaced is None else describe_misplaced(self.misplaced.inside, self.misplaced.labels)
        if pairs is not False:
            sentences += one_label(self.labels[0] + self.labels[1], self.labels[1])
        if pairs and self.lengths.sum() >= TELLING and not self.labels[0] + self.labels[1]:
            sentences.append("no example has a next-sentence label, so only masked words are learned from")
        if self.file_set.shape.static and self.lengths.sum() >= TELLING and not self.predictions:
            sentences.append("no example has a prediction, so there is no masked word to learn from")
        if self.predictions >= TELLING and self.kept == self.predictions:
            sentences.append("every predicted token is shown unmasked, so predicting it teaches nothing")
        return [*sentences, *unknown_words(self.unknown, int(self.lengths @ np.arange(len(self.lengths))))]


def _beyond(count: int, vocabulary: Sequence[str] | None, largest: int) -> list[str]:
    if vocabulary is None or not count:
        return []
    return [f"{count:,} ids are outside the vocabulary of {len(vocabulary):,} entries (the largest is {largest:,})"]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


class _DocumentTally:
    """Accumulates the counts of a set of files of tokenised documents."""

    def __init__(self, file_set: FileSet, vocabulary: Sequence[str] | None) -> None:
        self.file_set, self.vocabulary = file_set, vocabulary
        self.damaged = [str(error) for error in file_set.damaged]
        self.ids = np.zeros(0 if vocabulary is None else len(vocabulary), np.int64)
        """[V] number of occurrences of each vocabulary entry."""
        self.documents = self.sentences = self.tokens = self.single = self.empty = self.beyond = self.largest = 0
        self.lengths = np.zeros(len(_LENGTHS) + 1, np.int64)
        self.texts = BottomK(len(file_set.files))

    def add(self, block: TokenDocuments) -> None:
        self.documents += len(block)
        self.sentences += len(block.lengths)
        self.tokens += len(block.ids)
        self.single += int((block.counts == 1).sum())
        self.empty += int((block.sizes == 0).sum())
        self.lengths += np.bincount(np.searchsorted(_LENGTHS, block.lengths), minlength=len(self.lengths))
        self.largest = max(self.largest, int(block.ids.max(initial=0)))
        if self.vocabulary is not None:
            # Count larger ids separately: a single huge id would make `bincount` allocate a huge array.
            known = block.ids[block.ids < len(self.vocabulary)]
            self.beyond += len(block.ids) - len(known)
            self.ids += np.bincount(known, minlength=len(self.ids))
        # Empty documents are all equal and would count as repeated.
        contents = row_hashes(block.ids, ends(block.sizes))[block.sizes > 0]
        self.texts.add(contents, contents)

    @property
    def read(self) -> int:
        """Number of documents read."""
        return self.documents

    def numbers(self) -> dict[str, Any]:
        """The statistics; `single` counts the documents of one sentence: if nearly all are, no pairs can be built."""
        up_to = [f"up to {length:,}" for length in _LENGTHS] + ["longer"]
        return {
            "folder": str(self.file_set.folder),
            "kind": self.file_set.kind,
            "holds": "documents",
            "files": len(self.file_set.files),
            "documents": self.documents,
            "empty": self.empty,
            "single": self.single,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "lengths": dict(zip(up_to, self.lengths.tolist(), strict=True)),
            "largest_id": self.largest,
            "unknown_rate": self._count("[UNK]") / self.tokens if self.vocabulary and self.tokens else None,
        }

    def faults(self, world: int) -> list[str]:
        faults = [f"damaged: {message}" for message in self.damaged]
        faults += [f"{file.name} holds examples, the other files hold running text" for file in self.file_set.mixed]
        faults += _beyond(self.beyond, self.vocabulary, self.largest)
        texts = self.texts.repeated()
        if texts.several > max(1, _SHARED * texts.sampled):
            faults.append(f"{texts.several / texts.sampled:.1%} of the documents occur in several files")
        return faults

    def doubts(self, pairs: bool | None = None) -> list[str]:
        special = {entry: self._count(entry) for entry in ENTRIES}
        sentences = [f"{entry} occurs {count:,} times" for entry, count in special.items() if count]
        return [*sentences, *unknown_words(self._count("[UNK]"), self.tokens)]

    def _count(self, entry: str) -> int:
        if self.vocabulary is None or entry not in self.vocabulary:
            return 0
        return int(self.ids[self.vocabulary.index(entry)])
