"""Megatron-LM's indexed datasets: detects and writes a pair of files. The module `index` reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bertwright.core.errors import DataError
from bertwright.core.files import atomic_file, write_atomic
from bertwright.examples.instances import ends
from bertwright.formats.documents import DocumentFormat, TokenDocuments
from bertwright.formats.errors import reading
from bertwright.formats.format import Facts, Shape
from bertwright.formats.megatron.index import DTYPES, MAPPED, MAPPED_HEADER, OLD, open_index


def facts(file: Path) -> Facts | None:
    """Return what the .idx file `file` states about itself; None when it is not an .idx file."""
    with reading(file), open(file, "rb") as handle:
        head = handle.read(len(MAPPED))
    if head != MAPPED and not head.startswith(OLD):
        return None
    index = open_index(file)
    index.read(max(0, len(index) - 1), len(index))  # a .bin file that is cut off ends before the last document
    return Facts("megatron", Shape(None, None, static=False), len(index), documents=True)


def write_documents(file: Path, blocks: Iterable[TokenDocuments], vocabulary_size: int) -> int:
    """Write `file` (.idx) in the newer layout and the .bin file next to it; returns the number of documents.

    The dtype follows Megatron: 16 bits below 65,500 entries, otherwise 32. The .bin file is in place before the index.
    """
    code = 8 if vocabulary_size < 65_500 else 4
    dtype = np.dtype(DTYPES[code])
    lengths, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    with atomic_file(file.with_suffix(".bin")) as temporary, open(temporary, "wb") as data:
        for block in blocks:
            if len(block.ids) and not 0 <= block.ids.min() <= block.ids.max() < vocabulary_size:
                raise DataError(f"{file}: a document has an id outside the {vocabulary_size:,} entries.")
            data.write(block.ids.astype(dtype).tobytes())
            lengths.append(block.lengths)
            counts.append(block.counts)
    sizes, sentences = np.concatenate(lengths), ends(np.concatenate(counts))
    head = MAPPED_HEADER.pack(MAPPED, 1, code, len(sizes), len(sentences))
    starts = ends(sizes)[:-1] * dtype.itemsize
    # Written after the data, so that an existing index always has its data.
    write_atomic(file, b"".join([head, sizes.astype("<i4").tobytes(), starts.tobytes(), sentences.tobytes()]))
    return len(sentences) - 1


def _tokens_beside(file: Path) -> tuple[Path, ...]:
    return (file.with_suffix(".bin"),)


FORMAT = DocumentFormat("megatron", open_index, facts, write_documents, "_text_sentence.idx", _tokens_beside)
