"""Converts one corpus shard to its parts of the store and the plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.files import make_folder, write_atomic
from bertwright.core.task_records import is_done, mark_done
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.corpus.text import facts_name, read_documents, read_sources
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.documents import cut_last_tenth, documents_of, in_range, subset
from bertwright.examples.plan_builder import plan_passes
from bertwright.examples.store import Documents, Split, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

_DOCUMENTS_AT_ONCE = 500


@dataclass(frozen=True)
class ShardTask:
    """Everything a worker needs to prepare one shard."""

    name: str
    number: int
    corpus: Artifact
    """As returned by `of_one_shard`."""
    vocab: Artifact
    parts: Path
    config: ExamplesConfig
    sets: tuple[PlanSet, ...]
    vocabulary_size: int
    sources: tuple[str, ...] = ()
    """Names of the corpus's sources, if there are several: the source of each held-out document is then kept."""
    cut: bool = False
    """Whether its only document is the entire corpus, so that the last tenth of the document is held out."""

    @property
    def facts(self) -> Path:
        """The JSON file that is written last; it describes the parts: `{split: {counts, rows by set}}`."""
        return self.parts / f"{self.number:05}.json"


def of_one_shard(corpus: Artifact, name: str) -> Artifact:
    """`corpus` with its manifest reduced to one shard; with full manifests, all tasks together could need gigabytes."""
    files = corpus.manifest["files"]
    kept = {file: files[file] for file in (name, facts_name(name)) if file in files}
    return Artifact(corpus.path, {"stage": corpus.manifest["stage"], "files": kept})


def prepare_shard(task: ShardTask) -> None:
    """Write the shard's parts, unless they already exist."""
    if not is_done(task.facts):
        train, heldout = _split(_tokenised(task), task)
        members: dict[Split, tuple[Documents, Sequence[PlanSet]]] = {
            "train": (train, task.sets),
            "heldout": (heldout, ()),  # planned over all shards when these are joined
        }
        facts, files = dict[str, Any](), list[Path]()
        for split, (documents, sets) in members.items():
            facts[split], written = write_split(task.parts, task.number, split, documents, sets, task.config)
            files += written
        if task.sources:
            files.append(_write(task.parts / "heldout" / f"{task.number:05}.sources", _sources(task, heldout)))
        mark_done(task.facts, files, facts)


def _split(documents: Documents, task: ShardTask) -> tuple[Documents, Documents]:
    """The training documents, and the held-out documents."""
    if task.cut:
        return cut_last_tenth(documents)
    heldout = is_heldout(documents.hashes, task.config.heldout)
    return subset(documents, ~heldout), subset(documents, heldout)


def _tokenised(task: ShardTask) -> Documents:
    tokenizer = tokenizer_of(task.vocab)
    dtype = token_dtype(task.vocabulary_size)
    flat, lengths, counts, hashes = [np.zeros(0, dtype)], [np.zeros(0, np.int64)], list[int](), list[int]()
    documents = read_documents(task.corpus, task.name)
    for batch in _batches(documents, _DOCUMENTS_AT_ONCE):
        ids, sentence_lengths = tokenizer.encode_sentences([sentence for document in batch for sentence in document])
        flat.append(ids.astype(dtype))
        lengths.append(sentence_lengths)
        counts += [len(document) for document in batch]
        hashes += [text_hash(document) for document in batch]
    return documents_of(np.concatenate(flat), counts, np.concatenate(lengths), hashes)


def _sources(task: ShardTask, heldout: Documents) -> NDArray[np.uint16]:
    """[D] the source of each held-out document, as an index of `ShardTask.sources`."""
    # By the hash of the text, since documents without tokens are not among those that are held out.
    names = read_sources(task.corpus, task.name)
    by_hash = {
        text_hash(document): task.sources.index(name)
        for document, name in zip(read_documents(task.corpus, task.name), names, strict=True)
    }
    return np.array([by_hash[int(own)] for own in heldout.hashes], np.uint16)


def write_split(
    parts: Path, number: int, split: Split, documents: Documents, sets: Sequence[PlanSet], config: ExamplesConfig
) -> tuple[dict[str, Any], list[Path]]:
    """Write the documents of one split as part `number` of its store, and their plans for `sets`.

    Returns the counts of both, and the files written.
    """
    stem, files = make_folder(parts / split) / f"{number:05}", list[Path]()
    for name, array in {**vars(documents), "starts": documents.token_starts()}.items():
        files.append(_write(stem.with_suffix(f".{name}"), array))
    rows = {}
    for plan_set in sets:
        member = in_range(documents.hashes, plan_set.document_range)
        plans = plan_passes(documents, member, plan_set.length, config, config.passes)
        rows[plan_set.name] = [len(plan) for plan in plans]
        # All passes in one file: one file per pass would mean ten times as many files.
        files.append(_write(make_folder(parts / split / plan_set.name) / f"{number:05}.rows", np.concatenate(plans)))
    counts = {
        "dtype": documents.tokens.dtype.str,
        "tokens": len(documents.tokens),
        "sentences": len(documents.sentences),
        "documents": len(documents.hashes),
        "rows": rows,
    }
    return counts, files


def _write(path: Path, array: NDArray[Any]) -> Path:
    # No fsync: a part damaged by a crash does not match the hashes in its JSON file and is written again.
    write_atomic(path, array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes(), sync=False)
    return path


def _batches(documents: Iterator[list[str]], size: int) -> Iterator[list[list[str]]]:
    while batch := list(islice(documents, size)):
        yield batch


def tokenizer_of(vocab: Artifact) -> Tokenizer:
    """The tokenizer of a vocabulary, cached between the tasks of a process, because its word cache makes it fast."""
    return _tokenizer(vocab.path, vocab.fingerprint)


@lru_cache(maxsize=1)
def _tokenizer(vocab: Path, fingerprint: str) -> Tokenizer:
    """Keyed by the fingerprint too, because a folder may hold another vocabulary later."""
    return load_tokenizer(open_artifact(vocab, "vocab"))


def vocabulary_facts(vocab: Artifact) -> dict[str, Any]:
    """The content of `vocabulary.json` for a vocabulary: the fields of `vocabulary.Vocabulary`."""
    # Stored, because loading batches must not require a tokenizer (decision 0002).
    facts = asdict(Vocabulary.of(tokenizer_of(vocab), vocab.counts["vocabulary"]))
    return {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}
