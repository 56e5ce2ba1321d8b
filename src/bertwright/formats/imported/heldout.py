"""Held-out data of a run without a corpus: what each import task holds out, and how the parts are joined.

The masks of imported examples are undone, so that they are masked like all held-out text, and one plan row per example
reassembles it: the segments A and B are two sentences of a document, and a [SEP] inside A starts a new document. The
selection depends only on the ids before masking, not on the files or their order, so all copies of an example,
including copies with other masks, are on the same side of the split.

Examples come with their plan rows. Documents are planned when all parts exist, like those of a corpus: once, for the
length of their phase, with random partners from neighbouring parts of the same phase.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, read_bytes, write_atomic
from bertwright.core.task_records import read_done
from bertwright.corpus.heldout import is_heldout
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet
from bertwright.examples.heldout import Group, documents_of_groups, neighbours, plan_once, write_heldout_plans
from bertwright.examples.instances import Instances, ends
from bertwright.examples.join import join_store, totals
from bertwright.examples.plans import ROW, UNLABELLED, rows
from bertwright.examples.shard import write_split
from bertwright.examples.store import Documents, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.format import Kind
from bertwright.formats.imported.phase_files import PhaseFiles
from bertwright.formats.repetitions import Hashes, row_hashes


@dataclass(frozen=True)
class HoldOut:
    """What a task holds out in a run without a corpus."""

    share: float
    """Share of its examples or documents to hold out, selected by hash; 1 for files that are not for training."""
    parts: Path
    """Folder with the parts of all tasks."""
    number: int
    """Number of its held-out part among those of all phases."""
    config: ExamplesConfig

    @property
    def rows(self) -> Path:
        """The file with the plan rows of examples (those of documents are made once all parts exist)."""
        return self.parts / "heldout" / f"{self.number:05}.rows"


@dataclass(frozen=True)
class ImportTask(ABC):
    """What a worker needs to import one file, or a part of it; each kind of data has a task of its own."""

    data: ImportedData
    kind: Kind
    file: Path
    number: int
    """Number of the task in its set."""
    parts: Path
    """Folder with the parts of all tasks."""
    vocabulary: Vocabulary
    hold_out: HoldOut | None = field(default=None, kw_only=True)
    """What it holds out; None when a corpus provides the held-out text."""

    has_rows: ClassVar[bool]
    """Whether its held-out part has plan rows; if not, the part is planned when all parts are joined."""

    @property
    def trains(self) -> bool:
        """Whether at least part of its data is used for training."""
        return self.hold_out is None or self.hold_out.share < 1

    @property
    def folder(self) -> Path:
        """Folder with the parts of its set."""
        return self.parts / self.data.folder

    @property
    def facts(self) -> Path:
        """The note that is written last: `{"file", counts, ...}`, or `{"file", "fault"}`."""
        return self.folder / f"{self.number:05}.json"

    @abstractmethod
    def write_part(self) -> tuple[dict[str, Any], list[Path]]:
        """Write its part; returns the facts for the note, and the files written. Raises `ShardError` for damage."""


@dataclass
class HeldoutPart:
    """The held-out examples of one file, collected block by block."""

    hold_out: HoldOut
    vocabulary: Vocabulary
    documents: list[Documents] = field(default_factory=list)
    plan: list[NDArray[np.void]] = field(default_factory=list)
    """Plan rows of each block, [R] `ROW`."""
    tokens: int = 0

    def take(self, block: Instances) -> tuple[Instances, Hashes]:
        """Remove and keep the held-out examples of a block; returns the other N examples and their hashes [N]."""
        # Hash the ids before masking: a copy with other masks must be on the same side of the split.
        hashes = row_hashes(block.originals(), block.cu_seqlens)
        held = is_heldout(hashes, self.hold_out.share)
        if held.any():
            labelled = self.hold_out.config.pairs
            some = block.take(np.flatnonzero(held))
            documents, plan = as_documents(some, hashes[held], self.vocabulary, labelled, self.tokens)
            self.documents.append(documents)
            self.plan.append(plan)
            self.tokens += len(documents.tokens)
        return block.take(np.flatnonzero(~held)), hashes[~held]

    def write(self) -> tuple[dict[str, Any], list[Path]]:
        """Write the part; returns its counts and the files written."""
        hold_out, documents = self.hold_out, _join(self.documents, self.vocabulary.size)
        counts, files = write_split(hold_out.parts, hold_out.number, "heldout", documents, (), hold_out.config)
        plan = np.concatenate([np.zeros(0, ROW), *self.plan])
        # No sync to disk: if a crash damages a part, it no longer matches the hashes in its note.
        write_atomic(hold_out.rows, plan.tobytes(), sync=False)
        return {**counts, "examples": len(plan)}, [*files, hold_out.rows]


def as_documents(
    examples: Instances, hashes: Hashes, vocabulary: Vocabulary, labelled: bool, first: int = 0
) -> tuple[Documents, NDArray[np.void]]:
    """Convert the text of N examples to documents, with the `hashes` [N] of the examples, and a plan row per example.

    Token indices in the rows count from `first`, where these documents begin. Labels of pairs are used only with
    `labelled`. Special ids inside the text are left out, because nothing can be predicted there. Examples without text
    get no row.
    """
    tokens, example = examples.originals(), np.repeat(np.arange(len(examples)), examples.lengths)
    text = ~np.isin(tokens, vocabulary.special)
    ends_part = np.isin(tokens, (vocabulary.cls, vocabulary.sep))
    second = examples.segment_ids[text].astype(np.int64)
    stretch = np.cumsum(ends_part)[text] * (second == 0)  # number of the run between two special tokens; B is one run
    owner = example[text]
    begins_sentence = _changes(owner) | _changes(second) | _changes(stretch)
    # A [SEP] inside A marks where the text continues in another document.
    begins_document = _changes(owner) | (begins_sentence & (second == 0))
    sentences, documents = np.flatnonzero(begins_sentence), np.flatnonzero(begins_document)
    documents_made = Documents(
        tokens[text].astype(token_dtype(vocabulary.size)),
        np.diff(sentences, append=len(owner)).astype(np.uint16),
        np.append(np.searchsorted(sentences, documents), len(sentences)).astype(np.uint64),
        hashes[owner[documents]],
    )
    in_a = np.bincount(owner[second == 0], minlength=len(examples))
    of_example = np.bincount(owner, minlength=len(examples))
    a = first + ends(of_example)[:-1]
    document_breaks = np.maximum(np.bincount(owner[documents], minlength=len(examples)) - 1, 0)
    labels = examples.next_sentence_labels
    # A plan without pairs scores no labels, even if the files have some.
    label = np.where(labelled & (labels >= 0), labels, UNLABELLED)
    return documents_made, rows(a, a + in_a, a + in_a, a + of_example, label, document_breaks)[of_example > 0]


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of the values that differ from the previous one; the first always counts as different."""
    changed: NDArray[np.bool_] = np.diff(values, prepend=values[:1] - 1) != 0
    return changed


def _join(parts: list[Documents], vocabulary_size: int) -> Documents:
    first = ends([len(part.sentences) for part in parts]).astype(np.uint64)
    bounds = [part.documents[:-1] + start for part, start in zip(parts, first, strict=False)]
    return Documents(
        np.concatenate([np.zeros(0, token_dtype(vocabulary_size)), *(part.tokens for part in parts)]),
        np.concatenate([np.zeros(0, np.uint16), *(part.sentences for part in parts)]),
        np.concatenate([*bounds, first[-1:]]),
        np.concatenate([np.zeros(0, np.uint64), *(part.hashes for part in parts)]),
    )


class _Planned(NamedTuple):
    """A shard of the held-out store, and what its plan is built from."""

    counts: Group
    length: int
    rows: Path | None
    """File with the plan rows of its examples; None for documents, which still have to be planned."""


def join_heldout(
    draft: Path, tasks: Sequence[ImportTask], known: Mapping[str, str], config: ExamplesConfig
) -> dict[str, Any]:
    """Write `store/heldout.*` and a plan for each length of the phases into `draft`; returns the total counts.

    `known` are the inputs of the artifact: phases of the same length with the same files hold out the same data, which
    is stored once. Raises `DataError` when nothing is held out for a length.
    """
    # Reversed, so that the first of several phases with the same files is kept.
    distinct = {_content(task, known): task.data.phase for task in reversed(tasks)}.values()
    facts = {number(task): read_done(task.facts) for task in tasks if task.data.phase in distinct}
    shards = {part: note["heldout"] for part, note in facts.items() if "fault" not in note}
    held_tasks = [task for task in tasks if number(task) in shards]
    join_store(make_folder(draft / "store"), draft / ".parts" / "heldout", "heldout", shards)
    # One phase at a time: documents must not be paired with documents of a phase with another length.
    planned = [
        shard
        for _, of_phase in groupby(held_tasks, lambda task: task.data.phase)
        for shard in _plan_parts(list(of_phase), shards, config)
    ]
    groups = [shard.counts for shard in planned]
    documents = documents_of_groups(draft / "store", groups)
    plans = (
        {p.length: _rows(p.rows) if p.rows else plan_once(d, p.length, config)}
        for p, d in zip(planned, documents, strict=True)
    )
    lengths = sorted({task.data.length for task in tasks})
    counts = {**totals(shards), **write_heldout_plans(draft, lengths, groups, plans)}
    for length in lengths:
        if not counts["rows"][PlanSet(length=length).name][0]:
            raise _nothing_held_out(tasks, length, config)
    return counts


def number(task: ImportTask) -> int:
    """Return the number of the task's held-out part."""
    return _hold_out(task).number


def count_heldout(phases: PhaseFiles, tasks: Sequence[ImportTask], config: ExamplesConfig) -> dict[str, Any]:
    """Return for each phase the number of held-out `examples` (or `documents`), and their `files` or `share`."""
    counts = dict[str, Any]()
    for data, training in phases:
        of_phase = [task for task in tasks if task.data == data]
        parts = [part["heldout"] for task in of_phase if "fault" not in (part := read_done(task.facts))]
        unit = "documents" if training.documents else "examples"
        tests = list(dict.fromkeys(task.file.name for task in of_phase if not task.trains))
        share = None if tests else config.heldout
        counts[data.key] = {unit: sum(part[unit] for part in parts), "share": share, "files": tests}
    return counts


def _plan_parts(
    tasks: Sequence[ImportTask], shards: Mapping[int, dict[str, Any]], config: ExamplesConfig
) -> Iterator[_Planned]:
    """Yield the shards that the parts of one phase become."""
    length = tasks[0].data.length
    counts = [{name: shards[number(task)][name] for name in ("tokens", "sentences", "documents")} for task in tasks]
    if tasks[0].has_rows:
        yield from (_Planned(c, length, _hold_out(t).rows) for c, t in zip(counts, tasks, strict=True))
    else:
        # A single part may hold few held-out documents, which would be paired with themselves.
        yield from (_Planned(group, length, None) for group in neighbours(counts, config))


def _rows(path: Path) -> NDArray[np.void]:
    return np.frombuffer(read_bytes(path), ROW)


def _content(task: ImportTask, known: Mapping[str, str]) -> tuple[int, str, str | None]:
    """Return the key that determines what a phase holds out."""
    return task.data.length, known[task.data.input], known.get(task.data.test_input)


def _hold_out(task: ImportTask) -> HoldOut:
    assert task.hold_out is not None
    return task.hold_out


def _nothing_held_out(tasks: Sequence[ImportTask], length: int, config: ExamplesConfig) -> DataError:
    keys = ", ".join(dict.fromkeys(f"{task.data.key}.data" for task in tasks if task.data.length == length))
    # The remedy differs: a larger share, or other test files.
    if all(task.trains for task in tasks if task.data.length == length):
        why = (
            f"the share examples.heldout={config.heldout:g} selected none. Raise it, or put a folder named test next to"
        )
    else:
        why = "the test files are empty. Put examples there, or remove the test files to hold out a share of"
    return DataError(f"{keys}: there are no held-out examples to score length {length}: {why} the training files.")
