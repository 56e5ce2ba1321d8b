"""Megatron-LM's indexed data sets: documents of tokenised sentences in a .bin file and a .idx file beside it.

Two headers are read, both little-endian: MMIDIDX (memory-mapped, megatron/core/datasets/indexed_dataset.py) and the
older TNTIDX (fairseq's, with Megatron's document index). These are token documents, not examples: pairs are built of
them later. Everything the index declares is compared with the sizes of the two files before anything is mapped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import write_atomic
from bertwright.examples.formats.errors import ShardError, reading
from bertwright.examples.formats.format import Facts, Shape
from bertwright.examples.formats.instances import Ints, ends
from bertwright.examples.formats.whole import whole_file

_DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""The integer types among Megatron's codes."""
_MAPPED, _OLD = b"MMIDIDX\x00\x00", b"TNTIDX\x00\x00"
_MAPPED_HEADER, _OLD_HEADER = struct.Struct("<9sQBQQ"), struct.Struct("<8sQQQQQQ")


@dataclass(frozen=True)
class _Index:
    dtype: str
    lengths: Ints
    """[S] tokens of each sentence."""
    starts: Ints
    """[S] byte of the .bin file where each begins."""
    documents: Ints
    """[D + 1] first sentence of each document, and their number."""


def facts(file: Path) -> Facts | None:
    """What the .idx file `file` says of itself; None when it is none."""
    with reading(file), open(file, "rb") as handle:
        head = handle.read(len(_MAPPED))
    if head != _MAPPED and not head.startswith(_OLD):
        return None
    return Facts("megatron", Shape(None, None, static=False), len(_index(file).documents) - 1)


def read_documents(file: Path, vocabulary_size: int | None = None) -> Iterator[list[NDArray[np.int64]]]:
    """The documents of the data set with the index `file` (.idx), each a list of the token ids of its sentences.

    A damaged pair of files, or an id outside the vocabulary, is a `ShardError`.
    """
    index = _index(file)
    data = file.with_suffix(".bin")
    tokens: NDArray[Any] = np.zeros(0, index.dtype)
    if index.lengths.any():
        with reading(data):
            tokens = np.memmap(data, index.dtype, "r", shape=(data.stat().st_size // np.dtype(index.dtype).itemsize,))
    first = index.starts // tokens.itemsize
    for document, (start, stop) in enumerate(pairwise(index.documents)):
        sentences = []
        for sentence in range(start, stop):
            ids = tokens[first[sentence] : first[sentence] + index.lengths[sentence]].astype(np.int64)
            if len(ids) and (ids.min() < 0 or (vocabulary_size is not None and ids.max() >= vocabulary_size)):
                raise ShardError(data, f"document {document:,} has an id outside the vocabulary")
            sentences.append(ids)
        yield [ids for ids in sentences if len(ids)]


def write_documents(file: Path, documents: Iterable[list[NDArray[Any]]], vocabulary_size: int) -> int:
    """Write `file` (.idx) in the newer form and the .bin file beside it; the number of documents.

    The type is Megatron's choice: 16 bits below 65,500 entries, 32 above. The .bin file is in place before the index.
    """
    code = 8 if vocabulary_size < 65_500 else 4
    dtype = np.dtype(_DTYPES[code])
    lengths, sentences = list[int](), [0]
    with whole_file(file.with_suffix(".bin")) as temporary, open(temporary, "wb") as data:
        for document in documents:
            for ids in document:
                if len(ids) and not 0 <= ids.min() <= ids.max() < vocabulary_size:
                    raise DataError(f"{file}: document {len(sentences) - 1:,} has an id outside {vocabulary_size:,}.")
                data.write(ids.astype(dtype).tobytes())
                lengths.append(len(ids))
            sentences.append(len(lengths))
    starts = ends(lengths)[:-1] * dtype.itemsize
    head = _MAPPED_HEADER.pack(_MAPPED, 1, code, len(lengths), len(sentences))
    arrays = np.array(lengths, "<i4").tobytes(), starts.astype("<i8").tobytes(), np.array(sentences, "<i8").tobytes()
    write_atomic(file, head + b"".join(arrays))
    return len(sentences) - 1


def _index(file: Path) -> _Index:
    with reading(file), open(file, "rb") as handle:
        head = handle.read(_OLD_HEADER.size)
        index = _old_index(file, head) if head.startswith(_OLD) else _mapped_index(file, head)
    with reading(file.with_suffix(".bin")):
        size = file.with_suffix(".bin").stat().st_size
    width = np.dtype(index.dtype).itemsize
    documents = index.documents
    faults = [
        (index.lengths < 0).any() and "a sentence has a negative length",
        ((index.starts < 0) | (index.starts % width != 0)).any() and "a sentence begins between two tokens",
        (index.lengths > (size - index.starts) // width).any() and f"a sentence ends after the {size:,} bytes of .bin",
        (len(documents) == 0 or documents[0] != 0 or documents[-1] != len(index.lengths))
        and "the documents do not cover the sentences",
        (np.diff(documents) < 0).any() and "the documents do not rise",
    ]
    for fault in faults:
        if fault:
            raise ShardError(file, str(fault))
    return index


def _mapped_index(file: Path, head: bytes) -> _Index:
    if len(head) < _MAPPED_HEADER.size:
        raise ShardError(file, "its header is cut off")
    _, version, code, sentences, documents = _MAPPED_HEADER.unpack(head[: _MAPPED_HEADER.size])
    dtype = _known(file, version, code)
    arrays = _arrays(file, _MAPPED_HEADER.size, [("<i4", sentences), ("<i8", sentences), ("<i8", documents)])
    return _Index(dtype, *arrays)


def _old_index(file: Path, head: bytes) -> _Index:
    if len(head) < _OLD_HEADER.size:
        raise ShardError(file, "its header is cut off")
    _, version, code, width, sentences, sizes, documents = _OLD_HEADER.unpack(head)
    dtype = _known(file, version, code)
    counts = [sentences + 1, sentences + 1, sizes, documents]
    dimensions, offsets, lengths, first = _arrays(file, _OLD_HEADER.size, [("<i8", count) for count in counts])
    if sizes != sentences or width != np.dtype(dtype).itemsize or (dimensions != np.arange(sentences + 1)).any():
        raise ShardError(file, "its sentences are not plain lists of tokens")
    if ((offsets < 0) | (offsets > 2**62 // width)).any():
        raise ShardError(file, "a sentence begins outside the .bin file")
    return _Index(dtype, lengths, offsets[:-1] * width, first)


def _known(file: Path, version: int, code: int) -> str:
    if version != 1 or code not in _DTYPES:
        raise ShardError(file, f"version {version}, type {code}: only version 1 with integer tokens is read")
    return _DTYPES[code]


def _arrays(file: Path, offset: int, parts: list[tuple[str, int]]) -> list[Ints]:
    """The arrays (type, count) that follow each other from byte `offset`; they must be there in full."""
    size = offset + sum(np.dtype(dtype).itemsize * count for dtype, count in parts)
    if size > file.stat().st_size:
        raise ShardError(file, f"its header declares {size:,} bytes; the file has {file.stat().st_size:,}")
    found = []
    for dtype, count in parts:
        found.append(np.fromfile(file, dtype, count, offset=offset).astype(np.int64))
        offset += np.dtype(dtype).itemsize * count
    return found
