"""The token store: all text of a split as ids, tokenised once.

    store/train.tokens      concatenated ids, uint16 if the vocabulary allows it, else uint32
    store/train.sentences   uint16 number of tokens of each sentence (longer sentences are split at 65,535)
    store/train.documents   uint64 index of each document's first sentence, and the number of sentences
    store/train.starts      uint64 index of each document's first token, and the number of tokens
    store/train.hashes      uint64 hash of each document's text
    store/heldout.sources   uint16 number of each document's source, if the corpus has several (only of this split)
    store/train.json        dtype of the tokens, and the counts of each corpus shard

Little-endian, read by memory mapping. There is one file of each kind for all shards: a large corpus would otherwise
need more open files than a process may have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import naming, read_typed
from bertwright.core.shapes import Count
from bertwright.examples.vocabulary import Vocabulary

Split = Literal["train", "heldout"]
SPLITS: tuple[Split, ...] = ("train", "heldout")
_BLOCK = 1 << 20


class _Shard(TypedDict):
    tokens: Count
    sentences: Count
    documents: Count


class _Facts(TypedDict):
    dtype: Literal["<u2", "<u4"]
    shards: list[_Shard]


_FACTS = TypeAdapter(_Facts)


@dataclass(frozen=True)
class Documents:
    """D tokenised documents with S sentences and T tokens, from one shard (or an entire split)."""

    tokens: NDArray[Any]
    """[T] ids of all documents, concatenated; empty if documents are given without their tokens."""
    sentences: NDArray[np.uint16]
    """[S] number of tokens of each sentence."""
    documents: NDArray[np.uint64]
    """[D + 1] index of each document's first sentence, and the number of sentences."""
    hashes: NDArray[np.uint64]
    """[D] hash of each document: of its text, or, if imported, of its ids or of its example."""

    def token_starts(self) -> NDArray[np.uint64]:
        """[D + 1] index of each document's first token, and the number of tokens."""
        ends = np.cumsum(self.sentences, dtype=np.uint64)
        return np.concatenate([np.zeros(1, np.uint64), ends])[self.documents.astype(np.int64)]


@dataclass(frozen=True)
class Store(Documents):
    """The memory-mapped documents of a split."""

    starts: NDArray[np.uint64]
    """[D + 1] index of each document's first token, and the number of tokens."""
    shard_tokens: NDArray[np.int64]
    """[shards + 1] shard s holds the tokens `shard_tokens[s] : shard_tokens[s + 1]`."""
    vocabulary: Vocabulary
    members: NDArray[np.int64] | None = None
    """[M] indices of the documents that the plans are of; None: all of them."""

    @classmethod
    def open(cls, examples: Artifact, split: Split = "train", vocab: Artifact | None = None, within: str = "") -> Store:
        """Open the store of an examples artifact.

        Raises `ArtifactError` if it is damaged, or was tokenised with another vocabulary than `vocab`. `within` is a
        path prefix such as `imported/0/`, for the documents imported for a phase.
        """
        vocabulary = Vocabulary.open(examples, vocab)
        facts = read_typed(examples.file(f"{within}store/{split}.json"), _FACTS)
        dtypes = {"tokens": facts["dtype"], "sentences": "<u2", "documents": "<u8", "starts": "<u8", "hashes": "<u8"}
        arrays = {
            name: map_file(examples.file(f"{within}store/{split}.{name}"), dtype) for name, dtype in dtypes.items()
        }
        shards = facts["shards"]
        totals = {
            "tokens": sum(shard["tokens"] for shard in shards),
            "sentences": sum(shard["sentences"] for shard in shards),
            "hashes": sum(shard["documents"] for shard in shards),
        }
        totals |= dict.fromkeys(("documents", "starts"), totals["hashes"] + 1)
        # Text is located by offsets: with a truncated file they would point to other text, or fail during training.
        for name, array in arrays.items():
            if len(array) != totals[name]:
                raise ArtifactError(
                    f"{examples.path / f'{within}store/{split}.{name}'} has {len(array):,} entries, but its facts say "
                    f"{totals[name]:,}. Run the stage examples again."
                )
        tokens = f"{within}store/{split}.tokens"
        largest = _largest_id(examples.path / tokens, facts["dtype"], examples.manifest["files"][tokens]["sha256"])
        # Such an id would fail on the device, or be treated as another entry.
        if largest >= vocabulary.size:
            raise ArtifactError(
                f"{examples.path / tokens} has the id {largest:,}, beyond the {vocabulary.size:,} entries of its "
                "vocabulary. Run the stage examples again."
            )
        shard_tokens = np.cumsum([0, *(shard["tokens"] for shard in facts["shards"])])
        return cls(**arrays, shard_tokens=shard_tokens, vocabulary=vocabulary)


@cache
def _largest_id(path: Path, dtype: str, sha256: str) -> int:
    """The largest id in a token file with this hash, read once per process; -1 if it is empty."""
    largest = -1
    # Read instead of mapped, so that the store does not count as memory of the process.
    with naming(path), path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            largest = max(largest, int(np.frombuffer(block, dtype).max()))
    return largest


def map_file(path: Path, dtype: Any) -> NDArray[Any]:
    """[N] a file as a read-only mapped array; an empty file, which cannot be mapped, as an empty array.

    Raises `ArtifactError` if the file ends inside an entry.
    """
    size = path.stat().st_size
    if size % np.dtype(dtype).itemsize:
        raise ArtifactError(
            f"{path} ends in the middle of an entry: it has {size:,} bytes. Run the stage examples again."
        )
    return np.memmap(path, dtype, mode="r") if size else np.zeros(0, dtype)


def refuse_cut(arrays: Iterable[NDArray[Any]]) -> None:
    """Raise `ArtifactError` if the file behind a mapped array of any shape has become shorter than the array.

    Reading beyond the end would kill the process (SIGBUS) without a message. Checks only the file size.
    """
    for array in arrays:
        mapped = getattr(array, "_mmap", None)
        if isinstance(array, np.memmap) and mapped is not None and (size := mapped.size()) < len(mapped):
            raise ArtifactError(
                f"{array.filename} was truncated while it was read: it has {size:,} bytes of {len(mapped):,}. "
                "Restore it, or run the stage examples again; training then goes on from its newest checkpoint."
            )


def token_dtype(vocabulary_size: int) -> str:
    """The smaller of uint16 and uint32 that can hold every id."""
    return "<u2" if vocabulary_size <= 1 << 16 else "<u4"
