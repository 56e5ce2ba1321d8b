from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.core.tasks import Pool
from bertwright.corpus.decisions import COPIES, OUTCOMES, Outcome
from bertwright.corpus.dedup.find import Compared, find_copies
from bertwright.corpus.dedup.id_files import Dropped
from bertwright.corpus.part import DOCUMENT, DOCUMENTS, PARAGRAPH, PARAGRAPHS

Hash = tuple[int, int]


def write_parts(folder: Path, seed: int, sizes: list[int], distinct: int) -> tuple[tuple[Path, ...], list[list[Hash]]]:
    draw = np.random.default_rng(seed)
    pool = draw.integers(0, 2**64, (distinct, 2), np.uint64)
    pool[::3, 0] = pool[0, 0]  # many hashes that differ in their second half only
    paths, hashes = [], []
    for number, size in enumerate(sizes):
        rows = np.zeros(size, DOCUMENT)
        chosen = pool[draw.integers(0, distinct, size)]
        rows["high"], rows["low"] = chosen[:, 0], chosen[:, 1]
        paths.append(folder / str(number))
        np.save(paths[-1].with_suffix(DOCUMENTS), rows)
        np.save(paths[-1].with_suffix(COPIES), np.ones(size, np.uint8))
        hashes.append([tuple(pair) for pair in chosen.tolist()])
    return tuple(paths), hashes


def found(paths: tuple[Path, ...], compared: Compared, folder: Path) -> Dropped:
    with Pool(1) as here:
        return find_copies(paths, compared, folder, here)


@each_row(("bucket", "run"), [(2**20, 2**15), (50, 50), (7, 1)])
def test_all_but_the_first_of_each_hash_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int, run: int
) -> None:
    monkeypatch.setattr("bertwright.corpus.dedup.id_files.BUCKET", bucket)
    monkeypatch.setattr("bertwright.corpus.dedup.id_files.RUN", run)
    paths, hashes = write_parts(tmp_path, 3, [40, 0, 25, 60], 70)
    dropped = found(paths, Compared(DOCUMENTS), tmp_path)
    assert len(list(tmp_path.glob("copies-*.u64"))) >= 125 // bucket
    assert len(list(tmp_path.glob("run-*.u64"))) == len(dropped.files) == (3 if run == 50 else 1 if run > 50 else 4)
    seen: set[Hash] = set()
    for part, keys in enumerate(hashes):
        expected = [row for row, key in enumerate(keys) if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        assert dropped.rows(part).tolist() == expected


def test_finished_lists_are_not_made_again(tmp_path: Path) -> None:
    paths, _ = write_parts(tmp_path, 4, [10], 5)
    before = found(paths, Compared(DOCUMENTS), tmp_path).rows(0).tolist()
    paths[0].with_suffix(COPIES).unlink()
    assert found(paths, Compared(DOCUMENTS), tmp_path).rows(0).tolist() == before


def test_no_rows_are_dropped_without_lists() -> None:
    assert Dropped().rows(0).tolist() == []


def test_short_and_dropped_paragraphs_are_not_compared(tmp_path: Path) -> None:
    """Four documents of two paragraphs each; the first, which has the first copy of everything, is dropped."""
    documents, paragraphs = np.zeros(4, DOCUMENT), np.zeros(8, PARAGRAPH)
    documents["paragraphs"] = 2
    paragraphs["high"] = [1, 2, 1, 2, 1, 2, 3, 1]
    paragraphs["words"] = [30, 5, 30, 5, 30, 5, 30, 30]
    outcomes = np.array([Outcome.NEAR_DUPLICATE, Outcome.KEPT, Outcome.KEPT, Outcome.KEPT], np.uint8)
    for suffix, array in ((DOCUMENTS, documents), (PARAGRAPHS, paragraphs), (OUTCOMES, outcomes)):
        np.save((tmp_path / "0").with_suffix(suffix), array)
    dropped = found((tmp_path / "0",), Compared(PARAGRAPHS, least=20), tmp_path)
    assert dropped.rows(0).tolist() == [4, 7]
