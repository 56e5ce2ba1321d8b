"""Import of files of finished examples: each file becomes flat arrays, which are joined into those of the artifact.

A task is one file; a note completes its part, as for a corpus shard. A training example can also be held out: if test
files contain examples of the training files, or if another phase holds it out. Such examples are removed when the parts
are joined.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, read_bytes, write_json
from bertwright.core.task_records import read_done
from bertwright.examples.config import ImportedData
from bertwright.examples.information import one_label
from bertwright.examples.instances import ENDS, Instances, dtypes, ends, gather
from bertwright.examples.join import concatenate
from bertwright.examples.store import map_file
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.detect import FileSet
from bertwright.formats.imported.heldout import HeldoutPart, ImportTask
from bertwright.formats.imported.phase_files import hash_of
from bertwright.formats.known import format_of
from bertwright.formats.vocabulary_fit import Misplaced, describe_misplaced, without_special_labels
from bertwright.vocab.load import read_vocabulary

TELLING = 16
"""Number of predictions from which their most common id reliably shows whether it is [MASK]."""
HASHES = "hashes"
"""The column of the parts with the hash of each example's ids before masking; present when examples are held out."""
COUNTS = ("examples", "tokens", "predictions", "labelled", "random")
_AT_ONCE = 1 << 14
"""Number of examples written at a time."""
_OF_TOKENS, _OF_PREDICTIONS = ("tokens",), ("positions", "labels")


@dataclass(frozen=True)
class ExamplesTask(ImportTask):
    """What a worker needs to import one file of examples."""

    static: bool
    """Whether the set has masks."""
    vocab: Artifact

    has_rows: ClassVar[bool] = True

    def part(self, column: str) -> Path:
        """The file of one column."""
        return self.folder / f"{self.number:05}.{column}"

    def write_part(self) -> tuple[dict[str, Any], list[Path]]:
        """As `ImportTask.write_part`; the facts are the counts of the examples and the hash of the file."""
        return _write_part(self)


def examples_tasks(
    data: ImportedData, file_set: FileSet, parts: Path, vocab: Artifact, vocabulary: Vocabulary
) -> list[ExamplesTask]:
    """Return a task for each file of a set."""
    return [
        ExamplesTask(data, file_set.kind, file, number, parts, vocabulary, file_set.shape.static, vocab)
        for number, file in enumerate(file_set.files)
    ]


def _write_part(task: ExamplesTask) -> tuple[dict[str, Any], list[Path]]:
    kinds = dtypes(task.vocabulary.size) | dict.fromkeys(ENDS.values(), "<u2")
    part = HeldoutPart(task.hold_out, task.vocabulary) if task.hold_out else None
    kinds |= {HASHES: "<u8"} if part else {}
    totals = Counter(dict.fromkeys(("examples", "tokens", "predictions", "labelled", "random"), 0))
    # Ids beyond the vocabulary are not damage: `_check` explains them. Word pieces cannot be read without it.
    known = format_of(task.kind)
    entries = read_vocabulary(task.vocab.file("vocab.txt")) if known.reads_vocabulary else None
    first, predictions, hashes, misplaced = 0, 0, np.zeros(0, np.uint64), Misplaced(task.vocabulary.special)
    with ExitStack() as stack:
        out = {name: stack.enter_context(task.part(name).open("wb")) for name in kinds}
        # Skip empty blocks: `_check` needs the largest id, which they do not have.
        for block in filter(len, known.read(task.file, entries)):
            _check(task, block, first)
            misplaced.add(block)
            block = without_special_labels(block, task.vocabulary.special)
            first, predictions = first + len(block), predictions + len(block.labels)
            if part:
                block, hashes = part.take(block)
            for name, values in {**_columns(block), **({HASHES: hashes} if part else {})}.items():
                out[name].write(values.astype(kinds[name]).tobytes())
            labelled = int((block.next_sentence_labels >= 0).sum())
            random = int((block.next_sentence_labels == 1).sum())
            sizes = {"examples": len(block), "tokens": len(block.token_ids), "predictions": len(block.labels)}
            totals.update(**sizes, labelled=labelled, random=random)
        _check_masks(task, first, predictions)
        for handle in out.values():
            handle.flush()
            # The data must be on disk before the note that completes the part.
            os.fsync(handle.fileno())
    heldout, files = part.write() if part else (None, list[Path]())
    special = {"special_inside": misplaced.inside, "special_labels": misplaced.labels}
    facts = {**totals, **special, "sha256": hash_of(task.file)} | ({"heldout": heldout} if heldout else {})
    return facts, [*(task.part(name) for name in kinds), *files]


def _check_masks(task: ExamplesTask, examples: int, predictions: int) -> None:
    """Reject a file without any prediction; a single example, or a block of them, may have none."""
    if task.static and examples and not predictions:
        raise DataError(
            f"{task.data.key}.data: {task.file}: none of its {examples:,} examples has a prediction of a word, but its "
            "set is of examples with masks. Keep files with and without masks in folders of their own."
        )


def _columns(block: Instances) -> dict[str, NDArray[Any]]:
    return {
        "tokens": block.token_ids,
        "second": block.second,
        "positions": block.positions,
        "labels": block.labels,
        "next_sentence_labels": block.next_sentence_labels,
        "lengths": block.lengths,
        "predictions": np.diff(block.cu_predictions),
    }


def _check(task: ExamplesTask, block: Instances, first: int) -> None:
    """Reject faults that quarantining a file does not fix: too long examples, or another vocabulary."""
    data, special, lengths = task.data, task.vocabulary, block.lengths
    example = f"{data.key}.data: {task.file}: example"
    if len(over := np.flatnonzero(lengths > data.length)):
        raise DataError(
            f"{example} {first + over[0]:,} has {lengths[over[0]]} tokens, more than "
            f"{data.key}.length={data.length}. Set the length that the examples were made for."
        )
    if len(block.labels) and not task.static:
        raise DataError(
            f"{example} {first:,} and those after it have masks, but the first file of the set has none. "
            "Put files with and without masks in separate folders."
        )
    other = (
        "The examples were made with another vocabulary than the one of this run: set vocab.file to their vocabulary."
    )
    if (largest := max(block.token_ids.max(), block.labels.max(initial=0))) >= special.size:
        raise DataError(
            f"{example} {first:,} or one after it has id {largest}, but the vocabulary has {special.size:,} "
            f"entries. {other}"
        )
    begins, lasts = block.token_ids[block.cu_seqlens[:-1]], block.token_ids[block.cu_seqlens[1:] - 1]
    for ids, verb, name, number in ((begins, "begins", "[CLS]", special.cls), (lasts, "ends", "[SEP]", special.sep)):
        if len(wrong := np.flatnonzero(ids != number)):
            row = int(wrong[0])
            raise DataError(f"{example} {first + row:,} {verb} with id {ids[row]}, not {name} ({number}). {other}")
    shown, counts = np.unique(block.token_ids[block.predicted], return_counts=True)
    # 80 % of predictions are masked; if most show another id, the examples were made with another vocabulary.
    if counts.sum() >= TELLING and 2 * counts.max() > counts.sum() and shown[counts.argmax()] != special.mask:
        fault = f"id {shown[counts.argmax()]} is at most predicted positions, not [MASK] ({special.mask})"
        raise DataError(f"{example} {first:,} and those after it: {fault}. {other}")


def join_examples(draft: Path, data: ImportedData, file_set: FileSet, tasks: list[ExamplesTask]) -> dict[str, Any]:
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
    if tasks[0].hold_out and len(rows := _find_repeated(whole, draft / "store")):
        counts, copies = _leave_out(folder, dtypes(tasks[0].vocabulary.size), rows), {"repeated": len(rows)}
        _refuse_empty(data, file_set, counts, "all of them are held out")
    special = {
        name: dict(sum((Counter(note[name]) for note in kept), Counter[str]()))
        for name in ("special_inside", "special_labels")
    }
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


def _refuse_empty(data: ImportedData, file_set: FileSet, counts: dict[str, int], why: str) -> None:
    if not counts["examples"]:
        raise DataError(f"{data.key}.data: there is no example to train on in {file_set.folder} ({why}).")


def describe_examples(data: ImportedData, summary: dict[str, Any], pairs: bool) -> list[str]:
    """Return what the user should know about a phase's data."""
    masks = "with their masks" if summary["static"] else "without masks, masked during training"
    sentences = [f"{data.key}.data is {summary['examples']:,} examples ({summary['kind']}), {masks}"]
    if summary["incomplete"]:
        sentences.append(f"{data.key}.data is incomplete: {summary['incomplete']} were found")
    sentences += [
        f"{data.key}.data: skipped {left_out['file']}: {left_out['fault']}" for left_out in summary["quarantined"]
    ]
    misplaced = describe_misplaced(summary["special_inside"], summary["special_labels"])
    sentences += [f"warning: {data.key}.data: {sentence}" for sentence in misplaced]
    if copies := summary.get("repeated"):
        sentences.append(f"{data.key}.data: dropped {copies:,} examples with the same ids as a held-out one")
    without = summary["examples"] - summary["labelled"]
    if pairs and without:
        sentences.append(f"{without:,} of them have no next-sentence label and are used only for masked words")
    if pairs:
        sentences += [f"warning: {data.key}.data: {each}" for each in one_label(summary["labelled"], summary["random"])]
    if not pairs and summary["labelled"]:
        sentences.append("their next-sentence labels are not used, because examples.plan makes no pairs")
    return sentences


def _join_ends(target: Path, parts: list[Path]) -> None:
    last = 0
    with target.open("wb") as out:
        for part in parts:
            # 16 bits are enough: no length exceeds 32,768.
            sums = ends(np.frombuffer(read_bytes(part), "<u2")) + last
            out.write(sums[:-1].astype("<u8").tobytes())
            last = int(sums[-1])
        out.write(np.array([last], "<u8").tobytes())


def _find_repeated(tasks: Sequence[ExamplesTask], store: Path) -> NDArray[np.int64]:
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
                out.write(_take(name, values, cu, kept[start : start + _AT_ONCE]).tobytes())
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


def _take(
    name: str, values: NDArray[Any], cu: Mapping[str, NDArray[np.uint64]], rows: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the values of `rows` in a column that has one value per token, prediction or example."""
    if name in _OF_TOKENS:
        return values[gather(cu["cu_seqlens"], rows)[0]]
    return values[gather(cu["cu_predictions"], rows)[0] if name in _OF_PREDICTIONS else rows]
