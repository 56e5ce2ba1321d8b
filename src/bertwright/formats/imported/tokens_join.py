"""The parts of tokenised documents made elsewhere, joined into a store and plans, and what the user is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertwright.core.done import read_done
from bertwright.core.errors import DataError
from bertwright.core.files import write_json
from bertwright.examples.config import ImportedData, PlanSet
from bertwright.examples.heldout_overlap import heldout_contamination, training_text
from bertwright.examples.join import join_split
from bertwright.formats.imported.heldout_overlap import find_overlap
from bertwright.formats.imported.tokens import TokensTask
from bertwright.formats.recognise import Found

FEW = 0.01
"""Share of documents with special ids above which they are no accident of the text."""


def join_tokens(
    draft: Path, data: ImportedData, found: Found, tasks: Sequence[TokensTask], entries: Sequence[str]
) -> dict[str, Any]:
    """Write the store and the plans of a phase's documents; returns what `facts.json` says of the whole.

    `entries` are the vocabulary by id. `DataError` when nothing is left to train on, or many documents hold special
    ids.
    """
    facts = {task.number: read_done(task.facts) for task in tasks}
    left_out = {error.file.name: error.fault for error in found.damaged}
    left_out |= {each["file"]: each["fault"] for each in facts.values() if "fault" in each}
    facts = {number: each for number, each in facts.items() if each["file"] not in left_out}
    shards = {number: each["train"] for number, each in facts.items()}
    faults = "; ".join(f"{file}: {fault}" for file, fault in left_out.items()) or "its files hold no text"
    documents, special = _checked(data, found, facts, faults)
    folder, parts = draft / data.folder, tasks[0].folder
    shared = find_overlap(draft / "store", parts / "train", shards)
    if documents == len(shared):
        raise _nothing_left(data, found, "all of them are held out")
    own = PlanSet(length=data.length)
    counts = join_split(folder, parts, "train", shards, {own.name: own.length}, shared.rows_without)
    shared.blank(folder / "store", shards, tasks[0].vocabulary.pad)
    (rows,) = counts.pop("rows").values()
    (sequences,) = counts.pop("sequences").values()
    summary = {
        "kind": found.kind,
        "length": data.length,
        "examples": sum(rows),
        "rows": rows,
        **sequences,
        **counts,
        "ended": sum(each["ended"] for each in facts.values()),
        "special": special,
        "heldout": len(shared),
        "heldout_contamination": heldout_contamination(draft / "store", entries, training_text(folder / "store")),
        "quarantined": [{"file": file, "fault": fault} for file, fault in left_out.items()],
    }
    files = [file for each in facts.values() for file in each["files"]]
    write_json(folder / "facts.json", {**summary, "files": files})
    return summary


def _checked(data: ImportedData, found: Found, facts: dict[int, dict[str, Any]], faults: str) -> tuple[int, int]:
    """How many documents there are (at least one), and how many were left out because of special ids (few)."""
    documents = sum(each["train"]["documents"] for each in facts.values())
    special = sum(each["special"] for each in facts.values())
    if special > FEW * (documents + special):
        raise DataError(
            f"{data.key}.data: {special:,} of {documents + special:,} documents in {found.folder} hold the ids of "
            "[PAD], [CLS], [SEP] or [MASK] inside, which no text does. They were made with another vocabulary than "
            "this run's (give theirs as vocab.file), or are finished examples."
        )
    if not documents:
        raise _nothing_left(data, found, faults)
    return documents, special


def _nothing_left(data: ImportedData, found: Found, why: str) -> DataError:
    return DataError(f"{data.key}.data: there is no document to train on in {found.folder} ({why}).")


def told_of_tokens(data: ImportedData, summary: dict[str, Any]) -> list[str]:
    """What the user should know of a phase's documents."""
    key, overlap = f"{data.key}.data", summary["heldout_contamination"]
    said = [
        f"{key} is {summary['documents']:,} documents of {summary['sentences']:,} sentences and {summary['tokens']:,} "
        f"tokens ({summary['kind']}): {summary['examples']:,} examples in {len(summary['rows'])} passes"
    ]
    said += [f"{key}: left out {each['file']}: {each['fault']}" for each in summary["quarantined"]]
    if summary["ended"]:
        said.append(f"{key}: the id that ended {summary['ended']:,} documents was taken off")
    if summary["special"]:
        said.append(f"{key}: left out {summary['special']:,} documents with special ids inside")
    if summary["heldout"]:
        said.append(f"{key}: left out {summary['heldout']:,} documents that are held out here, token for token")
    if overlap["found"]:
        said.append(
            f"{key}: of {overlap['sentences']:,} held-out sentences of 13 words or more, {overlap['found']:,} have 13 "
            "words in a row that stand there"
        )
    return said
