"""Joins the parts of imported tokenised documents into a store and plans, without the documents this run holds out.

Documents that equal a held-out document, token for token, are found once all parts exist, because only then are all
held-out documents known. Their rows are left out of the plans, and their tokens in the store become [PAD].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.done import read_done
from bertwright.core.errors import DataError
from bertwright.core.files import read_bytes, read_json, write_json
from bertwright.examples.config import ImportedData, PlanSet
from bertwright.examples.heldout_overlap import heldout_contamination, training_text
from bertwright.examples.information import one_label
from bertwright.examples.instances import ends
from bertwright.examples.join import join_split
from bertwright.examples.store import map_file
from bertwright.formats.detect import FileSet
from bertwright.formats.imported.tokens import TokensTask
from bertwright.formats.repetitions import Hashes, row_hashes

FEW = 0.1
"""Share of documents with special ids above which these are not an accident of the text."""
_AT_ONCE = 1 << 12
"""Number of held-out documents hashed at a time."""


def join_tokens(
    draft: Path, data: ImportedData, file_set: FileSet, tasks: Sequence[TokensTask], entries: Sequence[str]
) -> dict[str, Any]:
    """Write the store and the plans of a phase's documents; returns the summary stored in `facts.json`.

    `entries` is the vocabulary by id. Raises `DataError` when nothing is left to train on, or when many documents hold
    special ids.
    """
    facts = {task.number: read_done(task.facts) for task in tasks}
    left_out = {error.file.name: error.fault for error in file_set.damaged}
    left_out |= {note["file"]: note["fault"] for note in facts.values() if "fault" in note}
    # Nothing is used of a damaged file, because it is unknown which of its ranges are valid.
    facts = {number: note for number, note in facts.items() if note["file"] not in left_out}
    shards = {number: note["train"] for number, note in facts.items()}
    faults = "; ".join(f"{file}: {fault}" for file, fault in left_out.items()) or "its files hold no text"
    documents, special = _checked(data, file_set, facts, faults)
    folder, parts = draft / data.folder, tasks[0].folder
    shared = _find_overlap(draft / "store", parts / "train", shards)
    # Fail here: with empty plans, training would fail later and could not explain why.
    if documents == len(shared):
        raise _nothing_left(data, file_set, "all of them are held out")
    own = PlanSet(length=data.length)
    counts = join_split(folder, parts, "train", shards, {own.name: own.length}, shared.rows_without)
    shared.blank(folder / "store", shards, tasks[0].vocabulary.pad)
    (rows,) = counts.pop("rows").values()
    (sequences,) = counts.pop("sequences").values()
    summary = {
        "kind": file_set.kind,
        "length": data.length,
        "examples": sum(rows),
        "rows": rows,
        **sequences,
        **counts,
        "ended": sum(note["ended"] for note in facts.values()),
        "special": special,
        "heldout": len(shared),
        "heldout_contamination": heldout_contamination(draft / "store", entries, training_text(folder / "store")),
        "quarantined": [{"file": file, "fault": fault} for file, fault in left_out.items()],
    }
    files = [file for note in facts.values() for file in note["files"]]
    write_json(folder / "facts.json", {**summary, "files": files})
    return summary


def _checked(data: ImportedData, file_set: FileSet, facts: dict[int, dict[str, Any]], faults: str) -> tuple[int, int]:
    """Return the number of documents, and of those left out because of special ids. Raises `DataError` if there is no
    document, or if too many were left out."""
    documents = sum(note["train"]["documents"] for note in facts.values())
    special = sum(note["special"] for note in facts.values())
    if special > FEW * (documents + special):
        raise DataError(
            f"{data.key}.data: {special:,} of {documents + special:,} documents in {file_set.folder} contain the "
            "ids of [PAD], [CLS], [SEP] or [MASK], which text never does. Either they were made with another "
            "vocabulary than the one of this run (then set vocab.file to it), or they are finished examples."
        )
    if not documents:
        raise _nothing_left(data, file_set, faults)
    return documents, special


def _nothing_left(data: ImportedData, file_set: FileSet, why: str) -> DataError:
    return DataError(f"{data.key}.data: there is no document to train on in {file_set.folder} ({why}).")


def told_of_tokens(data: ImportedData, summary: dict[str, Any]) -> list[str]:
    """Return what the user should know about a phase's documents."""
    key, overlap = f"{data.key}.data", summary["heldout_contamination"]
    said = [
        f"{key} is {summary['documents']:,} documents of {summary['sentences']:,} sentences and {summary['tokens']:,} "
        f"tokens ({summary['kind']}): {summary['examples']:,} examples in {len(summary['rows'])} passes"
    ]
    said += [f"{key}: skipped {left_out['file']}: {left_out['fault']}" for left_out in summary["quarantined"]]
    if summary["ended"]:
        said.append(f"{key}: removed the end-of-document id of {summary['ended']:,} documents")
    if (share := summary["label_share"]) is not None:
        said += [f"warning: {key}: {each}" for each in one_label(summary["examples"], share * summary["examples"])]
    if summary["special"]:
        said.append(f"warning: {key}: dropped {summary['special']:,} documents with special ids inside")
    if summary["heldout"]:
        said.append(f"{key}: dropped {summary['heldout']:,} documents with the same tokens as a held-out one")
    if overlap["found"]:
        said.append(
            f"{key}: of {overlap['sentences']:,} held-out sentences of {overlap['run']} or more, {overlap['found']:,} "
            f"share {overlap['run']} in a row with it"
        )
    return said


@dataclass(frozen=True)
class _Overlap:
    """The documents to leave out of a set, as found by `_find_overlap`."""

    parts: Path
    """Folder with the parts of the set's training split."""
    masks: dict[int, NDArray[np.bool_]]
    """For each part that has such documents, the mask [D] that selects them."""

    def __len__(self) -> int:
        return sum(int(mask.sum()) for mask in self.masks.values())

    def rows_without(self, number: int, rows: NDArray[np.void]) -> NDArray[np.void]:
        """Return the rows, of [R] `ROW` of part `number`, that use none of the left-out documents."""
        if (mask := self.masks.get(number)) is None:
            return rows
        starts, before = _array(self.parts, number, "starts"), ends(mask)
        a, b = (np.searchsorted(starts, rows[name], side="right") - 1 for name in ("a_start", "b_start"))
        in_a = before[a + rows["breaks"] + 1] > before[a]
        in_b = (rows["b_count"] > 0) & mask[np.minimum(b, len(mask) - 1)]  # without B, b_start is the end of A
        without: NDArray[np.void] = rows[~(in_a | in_b)]
        return without

    def blank(self, store: Path, numbers: Iterable[int], pad: int) -> None:
        """Overwrite the documents with `pad` in the store joined from the parts `numbers`, in that order."""
        if not self.masks:
            return
        tokens = np.memmap(store / "train.tokens", read_json(store / "train.json")["dtype"], "r+")
        first = 0
        for number in numbers:
            starts = _array(self.parts, number, "starts").astype(np.int64) + first
            for document in np.flatnonzero(self.masks.get(number, False)):
                # Overwrite, not remove: removing would shift the offsets of all later documents.
                tokens[starts[document] : starts[document + 1]] = pad
            first = int(starts[-1])
        tokens.flush()


def _find_overlap(store: Path, parts: Path, numbers: Iterable[int]) -> _Overlap:
    """Find documents of the parts `numbers` with the same tokens as a held-out document of the token store `store`."""
    heldout = np.concatenate([np.zeros(0, np.uint64), *_heldout_hashes(store)])
    masks = {number: np.isin(_array(parts, number, "hashes"), heldout) for number in numbers}
    return _Overlap(parts, {number: mask for number, mask in masks.items() if mask.any()})


def _heldout_hashes(store: Path) -> Iterator[Hashes]:
    tokens = map_file(store / "heldout.tokens", read_json(store / "heldout.json")["dtype"])
    starts = map_file(store / "heldout.starts", "<u8").astype(np.int64)
    edges = [*range(0, len(starts) - 1, _AT_ONCE), len(starts) - 1]
    for first, stop in pairwise(edges):
        yield row_hashes(tokens[starts[first] : starts[stop]], starts[first : stop + 1] - starts[first])


def _array(parts: Path, number: int, name: str) -> NDArray[np.uint64]:
    return np.frombuffer(read_bytes(parts / f"{number:05}.{name}"), "<u8")
