"""Sorted runs on disk, their buckets, and ids: every row is read once, whatever the cut."""

from itertools import combinations_with_replacement, pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.corpus.dedup import id_files
from bertwright.corpus.dedup.id_files import (
    Dropped,
    Gather,
    bucket,
    fences,
    gather,
    groups,
    ids_of,
    of_part,
    parts_and_rows,
    prefix_bits,
    read_columns,
    read_sorted,
    write_columns,
    write_run,
    write_sorted,
)


@each_row("sizes", [[], [0], [0, 0, 0], [5, 5, 5, 5], [100], [3, 100, 3, 3], [9, 1, 1, 9, 0, 10, 11, 1]])
def test_groups_are_contiguous_bounded_and_complete(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_files, "RUN", 10)
    cut = groups(sizes)
    assert [part for group in cut for part in group] == list(range(len(sizes)))
    assert all(len(group) == 1 or sum(sizes[part] for part in group) <= 10 for group in cut)
    assert all(sum(sizes[part] for part in one) + sizes[other.start] > 10 for one, other in pairwise(cut))


@each_row(("rows", "bits"), [(0, 0), (1, 0), (8, 0), (9, 1), (16, 1), (17, 2), (33, 3), (1000, 7)])
def test_buckets_are_as_many_as_keep_them_small(rows: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_files, "BUCKET", 8)
    assert prefix_bits(rows) == bits and rows <= 8 * 2**bits


@each_row("bits", [0, 1, 3])
def test_every_row_is_in_the_bucket_of_its_prefix_alone(bits: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(bits)
    edges = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]  # the first and last hash of buckets, and of all
    files, rows = [], []
    for number, size in enumerate([0, 1, 40]):
        hashes = np.concatenate([draw.integers(0, 2**64, size, np.uint64), np.array(edges if size else [], np.uint64)])
        table = np.stack([np.sort(hashes), np.arange(len(hashes), dtype=np.uint64) + np.uint64(1000 * number)])
        files.append(tmp_path / f"{number}.u64")
        write_run(files[-1], np.stack([np.zeros_like(table), table]))
        rows += table.T.tolist()
    found = [bucket(files, (2, 2), prefix, bits, table=1) for prefix in range(2**bits)]
    for prefix, columns in enumerate(found):
        assert ((columns[0] >> np.uint64(64 - bits)) == prefix).all() if bits else True
    assert sorted(row for columns in found for row in columns.T.tolist()) == sorted(rows)


def test_what_was_read_outlives_its_file(tmp_path: Path) -> None:
    """A view of a mapped file that was cut off would end the process."""
    path = tmp_path / "a.u64"
    write_columns(path, np.array([[1, 2]], np.uint64))
    ids = of_part(path, 0)
    assert ids.flags.owndata
    path.write_bytes(b"")
    assert ids.tolist() == [1, 2]


@each_row("fences", [[], [0], [0, 3, 3, 5, 9], [2, 2**64 - 1]])
def test_a_sorted_file_is_read_between_any_of_its_fences(fences: list[int], tmp_path: Path) -> None:
    sorted_rows = [
        [[1, 3, 3, 4, 9, 2**64 - 1], [10, 11, 12, 13, 14, 15]],
        [[0, 0, 5, 5, 5, 8], [20, 21, 22, 23, 24, 25]],
    ]
    path = tmp_path / "a.u64"
    write_sorted(path, np.array(sorted_rows, np.uint64), np.array(fences, np.uint64))
    for number, rows in enumerate(sorted_rows):
        for first, last in combinations_with_replacement(range(len(fences) + 1), 2):
            begins = sum(value < fences[first] for value in rows[0]) if first < len(fences) else 6
            ends = sum(value < fences[last] for value in rows[0]) if last < len(fences) else 6
            found = read_sorted(path, (2, 2), len(fences), range(first, last), number)
            assert found.tolist() == [column[begins:ends] for column in rows]


def test_an_empty_file_has_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.u64"
    write_columns(path, np.empty((3, 0), np.uint64))
    assert read_columns(path, 3).shape == (3, 0) and read_columns(path, 2, 4).shape == (2, 4, 0)


def test_ids_sort_by_source_order_and_can_be_split() -> None:
    parts = [(0, [0, 7]), (1, [0]), (2**31, [2**32 - 1])]
    ids = np.concatenate([ids_of(part, np.array(rows)) for part, rows in parts])
    assert (np.diff(ids.astype(object)) > 0).all()
    numbers, rows = parts_and_rows(ids)
    assert list(zip(numbers.tolist(), rows.tolist(), strict=True)) == [(0, 0), (0, 7), (1, 0), (2**31, 2**32 - 1)]


def test_lists_of_ids_are_gathered_by_part_each_id_once(tmp_path: Path) -> None:
    cut = [range(2), range(2, 4)]
    listed = {"a": [(0, 3), (2, 1)], "b": [(0, 3), (1, 9), (3, 0)], "c": []}
    for name, places in listed.items():
        ids = [ids_of(part, np.array([row])) for part, row in places]
        table = np.sort(np.concatenate([np.empty(0, np.uint64), *ids]))[None, None]
        write_sorted(tmp_path / f"{name}.u64", table, fences(cut))
    files = tuple(tmp_path / f"{name}.u64" for name in listed)
    tasks = [Gather(files, group, len(cut), tmp_path / f"drop-{group}.u64") for group in range(2)]
    for task in tasks:
        gather(task)
    dropped = Dropped(tuple(task.out for task in tasks), tuple(group.start for group in cut))
    assert [dropped.rows(part).tolist() for part in range(4)] == [[3], [9], [1], [0]]
