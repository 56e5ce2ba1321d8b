"""Import of external tokenised documents (Megatron's files, rows of running text of Hugging Face `datasets`) into a
separate token store with its own plans.

    imported/0/store/train.*      as `store/`; the hash of a document is that of its tokens
    imported/0/plans/train/…      as `plans/`
    imported/0/facts.json         what was read, and what was left out

A task is a range of documents of one file, about as long as a corpus shard, because a file may hold an entire
Wikipedia. After reading, the text is treated like that of a corpus: sentences of more than 65,535 tokens are split,
documents without tokens are dropped, plans follow the settings of `[examples]`, and a random second segment comes from
the same range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet
from bertwright.examples.documents import documents_of, is_heldout, subset
from bertwright.examples.instances import ends
from bertwright.examples.shard import write_split
from bertwright.examples.store import Documents, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.detect import FileSet, open_documents
from bertwright.formats.format import Kind, TokenDocuments
from bertwright.formats.imported.heldout import HoldOut
from bertwright.formats.imported.phase_files import files_of, hash_of
from bertwright.formats.repetitions import row_hashes

STRETCH = 1 << 20
"""Approximate number of tokens of a task."""
NEARLY_ALL = 0.9
"""Share of single-sentence documents from which a set is assumed to have no sentence boundaries."""


@dataclass(frozen=True)
class TokensTask:
    """What a worker needs to import one range of documents."""

    data: ImportedData
    kind: Kind
    file: Path
    """Megatron's .idx file, or an Arrow file."""
    first: int
    stop: int
    number: int
    """Number of the range in its set."""
    parts: Path
    vocabulary: Vocabulary
    end_of_document: int
    """The id, besides [SEP], that may end a document."""
    config: ExamplesConfig
    hold_out: HoldOut | None = None
    """What it holds out; None when a corpus provides the held-out text."""

    @property
    def trains(self) -> bool:
        """Whether at least part of the range is used for training."""
        return self.hold_out is None or self.hold_out.share < 1

    @property
    def folder(self) -> Path:
        """Folder with the parts of its set."""
        return self.parts / self.data.folder

    @property
    def facts(self) -> Path:
        """The note that is written last: `{"file", "train", "ended", "special", "files"}`, or `{"file", "fault"}`."""
        return self.folder / f"{self.number:05}.json"


def token_tasks(
    data: ImportedData,
    file_set: FileSet,
    parts: Path,
    vocabulary: Vocabulary,
    entries: Sequence[str],
    config: ExamplesConfig,
) -> list[TokensTask]:
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
        TokensTask(data, file_set.kind, *stretch, number, parts, vocabulary, end, config)
        for number, stretch in enumerate(stretches)
    ]


def _end_of_document(entries: Sequence[str]) -> int:
    """Return the id that Megatron's --append-eod appends: [EOS]. If the vocabulary lacks [BOS] or [EOS], its tokenizer
    adds them after the last entry, in this order."""
    return entries.index("[EOS]") if "[EOS]" in entries else len(entries) + ("[BOS]" not in entries)


def import_documents(task: TokensTask) -> tuple[dict[str, Any], list[Path]]:
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


def _without_end(task: TokensTask, block: TokenDocuments) -> tuple[TokenDocuments, int]:
    """Return the documents without the id that ends them, and how many had such an id."""
    last = ends(block.sizes)[1:][block.sizes > 0] - 1
    # A plan row inserts [SEP] at the end of a document, so an existing one would be doubled.
    last = last[np.isin(block.ids[last], (task.vocabulary.sep, task.end_of_document))]
    lengths = block.lengths.copy()
    lengths[np.searchsorted(ends(lengths), last, side="right") - 1] -= 1
    return TokenDocuments(np.delete(block.ids, last), lengths, block.counts), len(last)


def _check(task: TokensTask, block: TokenDocuments) -> None:
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
