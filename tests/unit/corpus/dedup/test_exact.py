from pathlib import Path

import numpy as np
import pytest

from bertwright.corpus.dedup.exact import buckets, dropped_rows, find_duplicates
from bertwright.corpus.part import ROW


def write_parts(
    folder: Path, seed: int, sizes: list[int], distinct: int
) -> tuple[list[Path], list[list[tuple[int, int]]]]:
    draw = np.random.default_rng(seed)
    pool = draw.integers(0, 2**64, (distinct, 2), np.uint64)
    pool[::3, 0] = pool[0, 0]  # many hashes that differ in their second half only
    paths, hashes = [], []
    for number, size in enumerate(sizes):
        rows = np.zeros(size, ROW)
        chosen = pool[draw.integers(0, distinct, size)]
        rows["high"], rows["low"] = chosen[:, 0], chosen[:, 1]
        np.save(folder / f"{number}.npy", rows)
        paths.append(folder / str(number))
        hashes.append([tuple(pair) for pair in chosen.tolist()])
    return paths, hashes


@pytest.mark.parametrize("bucket", [2**20, 50, 7])
def test_all_but_the_first_of_each_hash_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: int
) -> None:
    monkeypatch.setattr("bertwright.corpus.dedup.exact.BUCKET", bucket)
    paths, hashes = write_parts(tmp_path, 3, [40, 0, 25, 60], 70)
    tasks = buckets(paths, 125, tmp_path)
    assert len(tasks) >= 125 // bucket
    for task in tasks:
        find_duplicates(task)
    seen: set[tuple[int, int]] = set()
    for part, keys in enumerate(hashes):
        expected = [row for row, key in enumerate(keys) if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        assert dropped_rows(tasks, part).tolist() == expected


def test_a_finished_drop_list_is_not_made_again(tmp_path: Path) -> None:
    paths, _ = write_parts(tmp_path, 4, [10], 5)
    (task,) = buckets(paths, 10, tmp_path)
    find_duplicates(task)
    before = task.out.stat().st_mtime_ns
    paths[0].with_suffix(".npy").unlink()
    find_duplicates(task)
    assert task.out.stat().st_mtime_ns == before


def test_nothing_is_dropped_without_drop_lists() -> None:
    assert dropped_rows([], 0).tolist() == []
