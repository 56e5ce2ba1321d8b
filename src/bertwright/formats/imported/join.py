"""Joins the parts of imported examples into the arrays of the artifact, without the held-out examples.

A training example can also be held out: if test files contain examples of the training files, or if another phase holds
it out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.done import read_done
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, read_bytes, write_json
from bertwright.core.log import Log
from bertwright.examples.config import ExamplesConfig, ImportedData
from bertwright.examples.information import one_label
from bertwright.examples.instances import ENDS, dtypes, ends, gather
from bertwright.examples.join import concatenate
from bertwright.examples.store import map_file
from bertwright.formats.detect import FileSet
from bertwright.formats.imported.import_task import ImportTask
from bertwright.formats.imported.tasks import HASHES, Chosen, Import
from bertwright.formats.imported.tokens import TokensTask
from bertwright.formats.imported.tokens_join import join_tokens, told_of_tokens
from bertwright.formats.vocabulary_fit import describe_misplaced

COUNTS = ("examples", "tokens", "predictions", "labelled", "random")
_AT_ONCE = 1 << 14
"""Number of examples written at a time."""
_OF_TOKENS, _OF_PREDICTIONS = ("tokens",), ("positions", "labels")


def join_imported(
    draft: Path, chosen: Chosen, tasks: list[Import], config: ExamplesConfig, entries: Sequence[str], log: Log
) -> dict[str, Any]:
    """Write `imported/` from the parts of all tasks; returns the counts by phase, or an empty dict if there are none.

    `store/` must exist; `entries` is the vocabulary by id. Raises `DataError` when a phase has nothing left to train
    on.
    """
    counts = {}
    for data, file_set in chosen:
        of_phase = [task for task in tasks if task.data == data and task.trains]
        if file_set.documents:
            documents = [task for task in of_phase if isinstance(task, TokensTask)]
            summary = join_tokens(draft, data, file_set, documents, entries)
            said = told_of_tokens(data, summary)
        else:
            summary = _join_set(draft, data, file_set, [task for task in of_phase if isinstance(task, ImportTask)])
            said = _sentences(data, summary, config.pairs)
        for sentence in said:
            log.say(f"examples: {sentence}")
        counts[data.key] = summary
    labelled = [f"{key}.data" for key, summary in counts.items() if summary.get("labelled")]
    # Files do not state what their labels mean, so this is logged, not rejected.
    if config.plan == "sentence-order" and labelled:
        log.say(
            f"examples: the labels of {', '.join(labelled)} are next-sentence labels in this format (1: another "
            "document), but this run trains on them as sentence order (1: swapped). Unless a run with this plan "
            "wrote them, set examples.plan=next-sentence"
        )
    if any(not file_set.documents for _, file_set in chosen) and not any(task.hold_out for task in tasks):
        log.say("examples: examples made elsewhere may contain texts that are held out here; this cannot be checked")
    return {"imported": counts} if counts else {}


def _join_set(draft: Path, data: ImportedData, file_set: FileSet, tasks: list[ImportTask]) -> dict[str, Any]:
    """Write the arrays of a phase's data from the parts of its files; returns the summary stored in `facts.json`."""
    facts = [read_done(task.facts) for task in tasks]
    whole = [task for task, note in zip(tasks, facts, strict=True) if "fault" not in note]
    left_out = [{"file": error.file.name, "fault": error.fault} for error in file_set.damaged]
    left_out += [note for note in facts if "fault" in note]
    kept = [note for note in facts if "fault" not in note]
    counts = {name: sum(note[name] for note in kept) for name in COUNTS}
    faults = "; ".join(f"{note['file']}: {note['fault']}" for note in left_out) or "its files are empty"
    _refuse_empty(data, file_set, counts, faults)
    folder = make_folder(draft / data.folder)
    for name in dtypes(tasks[0].vocabulary.size):
        concatenate(folder / name, [task.part(name) for task in whole])
    for name, column in ENDS.items():
        _join_ends(folder / name, [task.part(column) for task in whole])
    copies: dict[str, int] = {}
    # Only now, because the complete held-out set is known only once all parts exist.
    if tasks[0].hold_out and len(rows := _repeated(whole, draft / "store")):
        counts, copies = _leave_out(folder, dtypes(tasks[0].vocabulary.size), rows), {"repeated": len(rows)}
        _refuse_empty(data, file_set, counts, "all of them are held out")
    special = {name: _sums(note[name] for note in kept) for name in ("special_inside", "special_labels")}
    summary = {
        "kind": file_set.kind,
        "static": file_set.shape.static,
        "length": data.length,
        **counts,
        **copies,
        "fill": counts["tokens"] / (counts["examples"] * data.length),
        "mask_rate": counts["predictions"] / counts["tokens"] if file_set.shape.static else None,
        **special,
        "incomplete": file_set.incomplete,
        "quarantined": left_out,
    }
    write_json(folder / "facts.json", {**summary, "files": kept})
    return summary


def _sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum((Counter(each) for each in counts), Counter[str]()))


def _refuse_empty(data: ImportedData, file_set: FileSet, counts: dict[str, int], why: str) -> None:
    if not counts["examples"]:
        raise DataError(f"{data.key}.data: there is no example to train on in {file_set.folder} ({why}).")


def _sentences(data: ImportedData, summary: dict[str, Any], pairs: bool) -> list[str]:
    """Return what the user should know about a phase's data."""
    masks = "with their masks" if summary["static"] else "without masks, masked during training"
    said = [f"{data.key}.data is {summary['examples']:,} examples ({summary['kind']}), {masks}"]
    if summary["incomplete"]:
        said.append(f"{data.key}.data is incomplete: {summary['incomplete']} were found")
    said += [f"{data.key}.data: skipped {left_out['file']}: {left_out['fault']}" for left_out in summary["quarantined"]]
    misplaced = describe_misplaced(summary["special_inside"], summary["special_labels"])
    said += [f"warning: {data.key}.data: {sentence}" for sentence in misplaced]
    if copies := summary.get("repeated"):
        said.append(f"{data.key}.data: dropped {copies:,} examples with the same ids as a held-out one")
    without = summary["examples"] - summary["labelled"]
    if pairs and without:
        said.append(f"{without:,} of them have no next-sentence label and are used only for masked words")
    if pairs:
        said += [f"warning: {data.key}.data: {each}" for each in one_label(summary["labelled"], summary["random"])]
    if not pairs and summary["labelled"]:
        said.append("their next-sentence labels are not used, because examples.plan makes no pairs")
    return said


def _join_ends(target: Path, parts: list[Path]) -> None:
    last = 0
    with target.open("wb") as out:
        for part in parts:
            # 16 bits are enough: no length exceeds 32,768.
            sums = ends(np.frombuffer(read_bytes(part), "<u2")) + last
            out.write(sums[:-1].astype("<u8").tobytes())
            last = int(sums[-1])
        out.write(np.array([last], "<u8").tobytes())


def _repeated(tasks: Sequence[ImportTask], store: Path) -> NDArray[np.int64]:
    """[K] indices of the examples of `tasks`, in file order, that are also held out in `store`, compared by hash."""
    heldout = map_file(store / "heldout.hashes", "<u8")
    parts = [np.frombuffer(read_bytes(task.part(HASHES)), "<u8") for task in tasks]
    masks = [np.isin(part, heldout) for part in parts]
    return np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *masks]))


def _leave_out(folder: Path, kinds: Mapping[str, str], rows: NDArray[np.int64]) -> dict[str, int]:
    """Remove the examples `rows` [K] from the arrays in `folder`, of dtypes `kinds`; returns the remaining counts."""
    cu = {name: map_file(folder / name, "<u8") for name in ENDS}
    kept = np.delete(np.arange(len(cu["cu_seqlens"]) - 1), rows)
    for name, kind in kinds.items():
        values = map_file(folder / name, kind)
        # Write to a separate file, because the array is mapped and still being read.
        with (folder / f".{name}").open("wb") as out:
            for start in range(0, len(kept), _AT_ONCE):
                out.write(_taken(name, values, cu, kept[start : start + _AT_ONCE]).tobytes())
        os.replace(folder / f".{name}", folder / name)
    for name, sums in cu.items():
        (folder / f".{name}").write_bytes(ends(np.diff(sums)[kept]).astype("<u8").tobytes())
        os.replace(folder / f".{name}", folder / name)
    labels = map_file(folder / "next_sentence_labels", kinds["next_sentence_labels"])
    sizes = {name: int(map_file(folder / name, "<u8")[-1]) for name in ENDS}
    return {
        "examples": len(kept),
        "tokens": sizes["cu_seqlens"],
        "predictions": sizes["cu_predictions"],
        "labelled": int((labels >= 0).sum()),
        "random": int((labels == 1).sum()),
    }


def _taken(
    name: str, values: NDArray[Any], cu: Mapping[str, NDArray[np.uint64]], rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the values of `rows` in a column that has one value per token, prediction or example."""
    if name in _OF_TOKENS:
        return values[gather(cu["cu_seqlens"], rows)[0]]
    return values[gather(cu["cu_predictions"], rows)[0] if name in _OF_PREDICTIONS else rows]
