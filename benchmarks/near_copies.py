"""How the search for near-copies scales: processor time and peak memory on synthetic documents, as a Markdown table.

    python benchmarks/near_copies.py [MILLIONS ...]       default: 0.6 1.2 2.5 5

The documents are signatures: out of a hundred, five are copies of an earlier one with a fifth of the numbers changed,
two are stubs that share half their numbers with one of fifty templates, and 93 resemble no other. They are stored in
parts of 2,000. Each search is a separate process on one core; 5 million documents need 6 GB in the temporary folder.
Signing is not measured, because it is linear.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertwright.core.tasks import Pool
from bertwright.corpus.decisions import COPIES
from bertwright.corpus.dedup.minhash import BANDS, WIDTH, write_signatures
from bertwright.corpus.dedup.near import find_near
from bertwright.corpus.part import DOCUMENT, DOCUMENTS, write_array

MILLIONS = ("0.6", "1.2", "2.5", "5")
PER_PART, COPIED, STUBS, TEMPLATES = 2000, 100, 40, 50
SIMILARITY = 0.65
_NUMBERS = BANDS * WIDTH


def write_parts(folder: Path, documents: int) -> tuple[Path, ...]:
    """Write the signed parts of `documents` synthetic documents; the same every time."""
    draw = np.random.default_rng(0)
    templates, earlier = _signatures(draw, TEMPLATES), _signatures(draw, 0)
    parts = tuple(folder / f"{number:06d}" for number in range(documents // PER_PART))
    for part in parts:
        rows = _signatures(draw, PER_PART)
        if len(earlier):
            rows[:COPIED] = _changed(draw, earlier[draw.integers(len(earlier), size=COPIED)], 0.2)
        rows[-STUBS:] = _changed(draw, templates[draw.integers(TEMPLATES, size=STUBS)], 0.5)
        earlier = np.concatenate([earlier, rows[COPIED:-STUBS:20]])[-20 * PER_PART :]
        write_array(part.with_suffix(DOCUMENTS), np.zeros(PER_PART, DOCUMENT))
        write_array(part.with_suffix(COPIES), np.ones(PER_PART, np.uint8))
        write_signatures(part, rows.reshape(-1, BANDS, WIDTH))
    return parts


def _signatures(draw: np.random.Generator, documents: int) -> NDArray[np.uint32]:
    return draw.integers(2**32 - 1, size=(documents, _NUMBERS), dtype=np.uint32)


def _changed(draw: np.random.Generator, rows: NDArray[np.uint32], share: float) -> NDArray[np.uint32]:
    return np.where(draw.random(rows.shape) < share, _signatures(draw, len(rows)), rows)


def search(folder: Path) -> None:
    """In a child process: print the number of dropped documents, the processor seconds, and the peak memory in MB."""
    parts = tuple(sorted(path.with_name(path.name.removesuffix(DOCUMENTS)) for path in folder.glob(f"*{DOCUMENTS}")))
    begun = time.process_time()
    with Pool(1) as here:
        found = find_near(parts, SIMILARITY, folder, here)
    dropped = sum(len(found.rows(number)) for number in range(len(parts)))
    seconds = time.process_time() - begun
    print(dropped, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(*millions: str) -> None:
    print("| documents, millions | dropped | processor seconds | beside the line before | peak memory |")
    print("|---|---|---|---|---|")
    before: tuple[float, float] | None = None
    for million in millions or MILLIONS:
        with tempfile.TemporaryDirectory() as folder:
            write_parts(Path(folder), int(float(million) * 1e6))
            done = subprocess.run([sys.executable, __file__, "--search", folder], check=True, capture_output=True)
        dropped, seconds, megabytes = map(float, done.stdout.split())
        size = float(million)
        growth = f"{seconds / before[1]:.2f} for {size / before[0]:.2f} times as many" if before else ""
        print(f"| {million} | {dropped:,.0f} | {seconds:.1f} | {growth} | {megabytes:.0f} MB |", flush=True)
        before = size, seconds


if __name__ == "__main__":
    if sys.argv[1:2] == ["--search"]:
        search(Path(sys.argv[2]))
    else:
        main(*sys.argv[1:])
