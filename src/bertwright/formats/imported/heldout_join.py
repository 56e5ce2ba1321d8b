"""Joins the held-out parts of a run without a corpus into the held-out store and its plans.

Examples come with their plan rows. Documents are planned here like those of a corpus: once, for the length of their
phase, with random partners from neighbouring parts of the same phase.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertwright.core.done import read_done
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, read_bytes
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.heldout_plans import (
    Group,
    documents_of_groups,
    neighbours,
    plan_once,
    write_heldout_plans,
)
from bertwright.examples.join import join_store, totals
from bertwright.examples.plans import ROW
from bertwright.formats.imported.heldout import HoldOut
from bertwright.formats.imported.import_task import ImportTask
from bertwright.formats.imported.tasks import Chosen, Import


class _Planned(NamedTuple):
    """A shard of the held-out store, and what its plan is built from."""

    counts: Group
    length: int
    rows: Path | None
    """File with the plan rows of its examples; None for documents, which still have to be planned."""


def join_heldout(
    draft: Path, tasks: Sequence[Import], known: Mapping[str, str], config: ExamplesConfig
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
        for shard in _planned(list(of_phase), shards, config)
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
            raise _nothing(tasks, length, config)
    return counts


def number(task: Import) -> int:
    """Return the number of the task's held-out part."""
    return _hold_out(task).number


def held_out_of(chosen: Chosen, tasks: Sequence[Import], config: ExamplesConfig) -> dict[str, Any]:
    """Return for each phase the number of held-out `examples` (or `documents`), and their `files` or `share`."""
    phases = dict[str, Any]()
    for data, training in chosen:
        of_phase = [task for task in tasks if task.data == data]
        parts = [part["heldout"] for task in of_phase if "fault" not in (part := read_done(task.facts))]
        unit = "documents" if training.documents else "examples"
        tests = list(dict.fromkeys(task.file.name for task in of_phase if not task.trains))
        share = None if tests else config.heldout
        phases[data.key] = {unit: sum(part[unit] for part in parts), "share": share, "files": tests}
    return phases


def _planned(
    tasks: Sequence[Import], shards: Mapping[int, dict[str, Any]], config: ExamplesConfig
) -> Iterator[_Planned]:
    """Yield the shards that the parts of one phase become."""
    length = tasks[0].data.length
    counts = [{name: shards[number(task)][name] for name in ("tokens", "sentences", "documents")} for task in tasks]
    if isinstance(tasks[0], ImportTask):
        yield from (_Planned(c, length, _hold_out(t).rows) for c, t in zip(counts, tasks, strict=True))
    else:
        # A single part may hold few held-out documents, which would be paired with themselves.
        yield from (_Planned(group, length, None) for group in neighbours(counts, config))


def _rows(path: Path) -> NDArray[np.void]:
    return np.frombuffer(read_bytes(path), ROW)


def _content(task: Import, known: Mapping[str, str]) -> tuple[int, str, str | None]:
    """Return the key that determines what a phase holds out."""
    return task.data.length, known[task.data.input], known.get(task.data.test_input)


def _hold_out(task: Import) -> HoldOut:
    assert task.hold_out is not None
    return task.hold_out


def _nothing(tasks: Sequence[Import], length: int, config: ExamplesConfig) -> DataError:
    keys = ", ".join(dict.fromkeys(f"{task.data.key}.data" for task in tasks if task.data.length == length))
    # The remedy differs: a larger share, or other test files.
    if all(task.trains for task in tasks if task.data.length == length):
        why = (
            f"the share examples.heldout={config.heldout:g} selected none. Raise it, or put a folder named test next to"
        )
    else:
        why = "the test files are empty. Put examples there, or remove the test files to hold out a share of"
    return DataError(f"{keys}: there are no held-out examples to score length {length}: {why} the training files.")
