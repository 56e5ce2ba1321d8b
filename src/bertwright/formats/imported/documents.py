"""Import of external tokenised documents (Megatron's files, rows of running text of Hugging Face `datasets`).

They become a separate token store with its own plans:

    imported/0/store/train.*      as `store/`; the hash of a document is that of its tokens
    imported/0/plans/train/…      as `plans/`
    imported/0/facts.json         what was read, and what was left out

A task is a range of documents of one file, about as long as a corpus shard, because a file may hold an entire
Wikipedia. After reading, the text is treated like that of a corpus: sentences of more than 65,535 tokens are split,
documents without tokens are dropped, plans follow the settings of `[examples]`, and a random second segment comes from
the same range.

Documents that equal a held-out document, token for token, are found once all parts exist, because only then are all
held-out documents known. Their rows are left out of the plans, and their tokens in the store become [PAD].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import read_bytes, read_json, write_json
from bertwright.core.task_records import read_done
from bertwright.corpus.heldout import is_heldout
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet
from bertwright.examples.documents import documents_of, subset
from bertwright.examples.heldout_overlap import heldout_contamination, training_text
from bertwright.examples.information import one_label
from bertwright.examples.instances import ends
from bertwright.examples.join import join_split
from bertwright.examples.shard import write_split
from bertwright.examples.store import Documents, map_file, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.detect import FileSet, open_documents
from bertwright.formats.format import TokenDocuments
from bertwright.formats.imported.heldout import ImportTask
from bertwright.formats.imported.phase_files import files_of, hash_of
from bertwright.formats.repetitions import Hashes, row_hashes

STRETCH = 1 << 20
"""Approximate number of tokens of a task."""
NEARLY_ALL = 0.9
"""Share of single-sentence documents from which a set is assumed to have no sentence boundaries."""
FEW = 0.1
"""Share of documents with special ids above which these are not an accident of the text."""
_AT_ONCE = 1 << 12
"""Number of held-out documents hashed at a time."""


@dataclass(frozen=True)
class DocumentsTask(ImportTask):
    """What a worker needs to import one range of documents; its `file` is Megatron's .idx file, or an Arrow file."""

    first: int
    stop: int
    end_of_document: int
    """The id, besides [SEP], that may end a document."""
    config: ExamplesConfig

    has_rows: ClassVar[bool] = False

    def write_part(self) -> tuple[dict[str, Any], list[Path]]:
        """As `ImportTask.write_part`; see `import_documents`."""
        return import_documents(self)


def documents_tasks(
    data: ImportedData,
    file_set: FileSet,
    parts: Path,
    vocabulary: Vocabulary,
    entries: Sequence[str],
    config: ExamplesConfig,
) -> list[DocumentsTask]:
    """Return a task for each range of the files of a set. Raises `DataError` when the plan needs pairs but nearly all
    documents have a single sentence."""
    stretches, counts = list[tuple[Path, int, int]](), [np.zeros(0, np.int64)]
    for file in file_set.files:
        documents_of_file = open_documents(file, file_set.kind)
        stretches += [(file, first, stop) for first, stop in documents_of_file.pieces(STRETCH)]
        counts.append(documents_of_file.counts)
    sentences = np.concatenate(counts)
    single, documents = int((sentences == 1).sum()), int((sentences > 0).sum())
    # Any text has a few single-sentence documents, but no pair can be built from such documents alone.
    if config.pairs and documents and single >= NEARLY_ALL * documents:
        raise DataError(
            f"{data.key}.data: {single:,} of {documents:,} documents in {file_set.folder} have only one sentence, "
            f"but examples.plan={config.plan} pairs sentences of a document. Set examples.plan to doc-sentences or "
            "full-sentences, or make files with sentence boundaries, e.g. with Megatron's --split-sentences."
        )
    end = _end_of_document(entries)
    return [
        DocumentsTask(data, file_set.kind, file, number, parts, vocabulary, first, stop, end, config)
        for number, (file, first, stop) in enumerate(stretches)
    ]


def _end_of_document(entries: Sequence[str]) -> int:
    """Return the id that Megatron's --append-eod appends: [EOS]. If the vocabulary lacks [BOS] or [EOS], its tokenizer
    adds them after the last entry, in this order."""
    return entries.index("[EOS]") if "[EOS]" in entries else len(entries) + ("[BOS]" not in entries)


def import_documents(task: DocumentsTask) -> tuple[dict[str, Any], list[Path]]:
    """Write the part of one range; returns its facts and the files written.

    Facts: the counts of its store and plans, the number of documents whose end id was removed (`ended`), the number of
    documents left out because they hold special ids (`special`), and for the first range of a file its `files` with
    their hashes.
    """
    block, ended = _without_end(task, open_documents(task.file, task.kind).read(task.first, task.stop))
    _check(task, block)
    # Hash the ids, because the original text is not available.
    contents = row_hashes(block.ids, ends(block.sizes)).tolist()
    ids = block.ids.astype(token_dtype(task.vocabulary.size))
    documents = documents_of(ids, block.counts.tolist(), block.lengths, contents)
    special = _with_special(task.vocabulary, documents)
    facts: dict[str, Any] = {"ended": ended, "special": int(special.sum())}
    documents, written = subset(documents, ~special), list[Path]()
    if out := task.hold_out:
        held = is_heldout(documents.hashes, out.share)
        facts["heldout"], written = write_split(
            out.parts, out.number, "heldout", subset(documents, held), (), task.config
        )
        documents = subset(documents, ~held)
    sets = [PlanSet(length=task.data.length)]
    facts["train"], files = write_split(task.folder, task.number, "train", documents, sets, task.config)
    # Once per file, not once per range: hashing reads the entire file.
    sources = files_of([task.file], task.kind) if task.first == 0 else []
    facts["files"] = [{"file": file.name, "sha256": hash_of(file)} for file in sources]
    return facts, [*files, *written]


def _without_end(task: DocumentsTask, block: TokenDocuments) -> tuple[TokenDocuments, int]:
    """Return the documents without the id that ends them, and how many had such an id."""
    last = ends(block.sizes)[1:][block.sizes > 0] - 1
    # A plan row inserts [SEP] at the end of a document, so an existing one would be doubled.
    last = last[np.isin(block.ids[last], (task.vocabulary.sep, task.end_of_document))]
    lengths = block.lengths.copy()
    lengths[np.searchsorted(ends(lengths), last, side="right") - 1] -= 1
    return TokenDocuments(np.delete(block.ids, last), lengths, block.counts), len(last)


def _check(task: DocumentsTask, block: TokenDocuments) -> None:
    """Reject ids beyond the vocabulary; quarantining a file does not fix this fault."""
    if len(beyond := np.flatnonzero(block.ids >= task.vocabulary.size)):
        document = task.first + np.searchsorted(ends(block.sizes), beyond[0], side="right") - 1
        raise DataError(
            f"{task.data.key}.data: {task.file}: document {document:,} has id {block.ids[beyond[0]]}, but the "
            f"vocabulary has {task.vocabulary.size:,} entries. The file was made with another vocabulary than the "
            "one of this run: set vocab.file to that vocabulary."
        )


def _with_special(vocabulary: Vocabulary, documents: Documents) -> NDArray[np.bool_]:
    """[D] which documents hold an id that text never has: some tokenizers read "[MASK]" in an article as the mask."""
    places = np.flatnonzero(np.isin(documents.tokens, vocabulary.special))
    holds_special = np.zeros(len(documents.hashes), np.bool_)
    holds_special[np.searchsorted(documents.token_starts(), places, side="right") - 1] = True
    return holds_special


def join_documents(
    draft: Path, data: ImportedData, file_set: FileSet, tasks: Sequence[DocumentsTask], entries: Sequence[str]
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
    documents, special = _count_documents(data, file_set, facts, faults)
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


def _count_documents(
    data: ImportedData, file_set: FileSet, facts: dict[int, dict[str, Any]], faults: str
) -> tuple[int, int]:
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


def describe_documents(data: ImportedData, summary: dict[str, Any]) -> list[str]:
    """Return what the user should know about a phase's documents."""
    key, overlap = f"{data.key}.data", summary["heldout_contamination"]
    sentences = [
        f"{key} is {summary['documents']:,} documents of {summary['sentences']:,} sentences and {summary['tokens']:,} "
        f"tokens ({summary['kind']}): {summary['examples']:,} examples in {len(summary['rows'])} passes"
    ]
    sentences += [f"{key}: skipped {left_out['file']}: {left_out['fault']}" for left_out in summary["quarantined"]]
    if summary["ended"]:
        sentences.append(f"{key}: removed the end-of-document id of {summary['ended']:,} documents")
    if (share := summary["label_share"]) is not None:
        sentences += [f"warning: {key}: {each}" for each in one_label(summary["examples"], share * summary["examples"])]
    if summary["special"]:
        sentences.append(f"warning: {key}: dropped {summary['special']:,} documents with special ids inside")
    if summary["heldout"]:
        sentences.append(f"{key}: dropped {summary['heldout']:,} documents with the same tokens as a held-out one")
    if overlap["found"]:
        sentences.append(
            f"{key}: of {overlap['sentences']:,} held-out sentences of {overlap['run']} or more, {overlap['found']:,} "
            f"share {overlap['run']} in a row with it"
        )
    return sentences


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
