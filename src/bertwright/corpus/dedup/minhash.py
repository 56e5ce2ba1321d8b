"""MinHash signatures (Broder 1997): the share of equal numbers estimates how many runs of words two texts share.

Runs have 5 words, as in the published pipelines. The signatures are those of R-MinHash (rensa, algorithm version 2): a
function of the set of runs and a fixed seed, identical on every processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rensa import RMinHash

from bertwright.core.files import naming, read_bytes, write_atomic
from bertwright.core.task_records import mark_done
from bertwright.corpus.ngrams import grams
from bertwright.corpus.part import is_written
from bertwright.corpus.text import TEXT, documents_in

BANDS, WIDTH = 32, 4
"""A signature is 32 bands of 4 numbers: texts of similarity 0.6 share a band with probability 0.988, of 0.7 0.9999."""
SIGNATURES = ".minhash.u32"
# Five words, as in the published pipelines: one changed word alters all five runs that contain it.
_RUN = 5
_AT_ONCE = 2**20
# Must never change: parts of one draft may be signed by different processes, days apart.
_SEED = 42
_BYTES = BANDS * WIDTH * 4


@dataclass(frozen=True)
class SignPart:
    """A part whose documents need signatures."""

    part: Path
    spaced: bool
    """Whether its language puts spaces between words."""


def sign_part(task: SignPart) -> None:
    """Write the signatures of a part, unless the file exists."""
    if not is_written(task.part.with_suffix(SIGNATURES)):
        signed = [signatures(texts, spaced=task.spaced) for texts in _batches(task.part.with_suffix(TEXT))]
        write_signatures(task.part, np.concatenate(signed))


def write_signatures(part: Path, rows: NDArray[np.uint32]) -> None:
    """Write signatures [documents, bands, width] as raw numbers without a header: 512 bytes per document."""
    out = part.with_suffix(SIGNATURES)
    write_atomic(out, rows.astype("<u4", copy=False).tobytes(), sync=False)
    mark_done(out.with_suffix(".json"), [out])


def signatures_of(part: Path) -> NDArray[np.uint32]:
    """The signatures of a part: [documents, bands, width]."""
    return np.frombuffer(read_bytes(part.with_suffix(SIGNATURES)), "<u4").reshape(-1, BANDS, WIDTH)


def read_signatures(part: Path, rows: Sequence[int], into: NDArray[np.uint32]) -> None:
    """Read the signatures of these rows of a part into `into` [rows, bands x width]."""
    path = part.with_suffix(SIGNATURES)
    # Unbuffered: the rows are far apart, and a buffer would read 8 KiB for each 512 bytes.
    with naming(path), open(path, "rb", buffering=0) as handle:
        for row, place in zip(rows, into, strict=True):
            handle.seek(row * _BYTES)
            handle.readinto(place)


def _batches(part: Path) -> Iterator[list[str]]:
    """The texts of a part, about a million characters at a time; the last batch may be empty."""
    texts, size = list[str](), 0
    for text in map("\n".join, documents_in(part)):
        texts.append(text)
        size += len(text)
        if size >= _AT_ONCE:
            yield texts
            texts, size = [], 0
    yield texts


def signatures(texts: Iterable[str], *, spaced: bool = True) -> NDArray[np.uint32]:
    """The signature of each text: [texts, bands, width]."""
    runs = [grams(text, _RUN, spaced=spaced) for text in texts]
    bounds = np.cumsum([0, *map(len, runs)]).astype(np.uint64)
    flat = np.concatenate([np.zeros(0, np.uint64), *runs])
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(flat, bounds, BANDS * WIDTH, _SEED)
    return np.array(matrix.to_rows(), np.uint32).reshape(len(runs), BANDS, WIDTH)
