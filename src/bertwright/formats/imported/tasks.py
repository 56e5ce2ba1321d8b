"""One-time import of external examples: files in any supported format become flat arrays that can be memory-mapped.

A task is one file; a note completes its part, as for a corpus shard. Tokenised documents become a store and plans
instead (`tokens`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.core.done import is_done, mark_done
from bertwright.core.errors import DataError
from bertwright.core.files import cannot_write, make_folder
from bertwright.examples.config import ExamplesConfig, ImportedData
from bertwright.examples.instances import ENDS, Instances, dtypes
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.detect import FileSet
from bertwright.formats.errors import ShardError
from bertwright.formats.imported.heldout import HeldoutPart
from bertwright.formats.imported.import_task import ImportTask
from bertwright.formats.imported.phase_files import damaged, hash_of
from bertwright.formats.imported.tokens import TokensTask, import_documents, token_tasks
from bertwright.formats.known import format_of
from bertwright.formats.vocabulary_fit import Misplaced, without_special_labels
from bertwright.vocab.load import read_vocabulary

TELLING = 16
"""Number of predictions from which their most common id reliably shows whether it is [MASK]."""
HASHES = "hashes"
"""The column of the parts with the hash of each example's ids before masking; present when examples are held out."""

Chosen = Sequence[tuple[ImportedData, FileSet]]
"""The phases with external data, and the files of each."""
Import = ImportTask | TokensTask
"""An import task of the stage."""


def import_tasks(
    chosen: Chosen, parts: Path, vocab: Artifact, vocabulary: Vocabulary, config: ExamplesConfig
) -> list[Import]:
    """Return a task for each file of each phase; several for a file of tokenised documents."""
    tasks: list[Import] = []
    for data, file_set in chosen:
        if file_set.documents:
            entries = read_vocabulary(vocab.file("vocab.txt"))
            tasks += token_tasks(data, file_set, parts, vocabulary, entries, config)
        else:
            tasks += [
                ImportTask(data, file, file_set.kind, file_set.shape.static, number, parts, vocab, vocabulary)
                for number, file in enumerate(file_set.files)
            ]
    return tasks


def import_file(task: Import) -> None:
    """Write the part of one task unless it exists; with `quarantine`, only the fault of a damaged file is recorded."""
    if is_done(task.facts):
        return
    make_folder(task.facts.parent)
    try:
        facts, files = import_documents(task) if isinstance(task, TokensTask) else _write_part(task)
    except ShardError as error:
        if not task.data.quarantine:
            raise damaged(task.data, error) from error
        facts, files = {"fault": error.fault}, []
    # Errors while reading are already `DataError`s, so this one is from writing.
    except OSError as error:
        raise cannot_write(task.parts, error) from error
    mark_done(task.facts, files, {"file": task.file.name, **facts})


def _write_part(task: ImportTask) -> tuple[dict[str, Any], list[Path]]:
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


def _check_masks(task: ImportTask, examples: int, predictions: int) -> None:
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


def _check(task: ImportTask, block: Instances, first: int) -> None:
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
