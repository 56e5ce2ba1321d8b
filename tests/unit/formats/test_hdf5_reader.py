"""Our way to the bytes of a dataset beside h5py's."""

import zlib

import h5py
import numpy as np
import pytest
from tests.rows import each_row

from bertwright.formats.errors import ShardError
from bertwright.formats.hdf5.heaps import Heaps, Runs
from bertwright.formats.hdf5.reader import Mapped, Stored


@each_row("libver", ["earliest", "latest"])
@each_row("userblock", [0, 512])
@each_row(
    "settings",
    [
        {},
        {"chunks": (7, 5)},
        {"chunks": (7, 5), "compression": "gzip"},
        {"chunks": (40, 9), "compression": "gzip", "shuffle": True},
        {"chunks": (3, 4), "shuffle": True, "maxshape": (None, None)},
    ],
)
def test_rows_are_those_of_h5py(tmp_path, settings, userblock, libver):
    values = np.random.default_rng(3).integers(-(2**31), 2**31, (41, 13)).astype(">i4")
    with h5py.File(tmp_path / "f", "w", userblock_size=userblock, libver=libver) as handle:
        handle.create_dataset("x", data=values, **settings)
        handle.create_dataset("flat", data=values[:, 0].astype("i1"), chunks=settings.get("chunks", ())[:1] or None)
        handle.create_dataset("none", (0, 4), "i4")
    with h5py.File(tmp_path / "f") as handle, Mapped(tmp_path / "f") as mapped:
        stored = Stored(mapped, handle["x"], handle["x"].dtype)
        for start, stop in ((0, 41), (0, 7), (3, 20), (40, 99), (41, 50)):
            assert np.array_equal(stored.rows(start, stop), values[start:stop])
        flat = Stored(mapped, handle["flat"], handle["flat"].dtype)
        assert np.array_equal(flat.rows(5, 30), values[5:30, 0].astype("i1"))
        assert Stored(mapped, handle["none"], np.dtype("i4")).rows(0, 10).shape == (0, 4)


@each_row("userblock", [0, 1024])
@each_row("settings", [{}, {"chunks": (6,)}, {"chunks": (6,), "compression": "gzip", "shuffle": True}])
def test_runs_are_those_of_h5py(tmp_path, settings, userblock):
    rng = np.random.default_rng(4)
    runs = [rng.integers(-99, 999, size).astype("i2") for size in rng.integers(0, 3000, 20)]
    with h5py.File(tmp_path / "f", "w", userblock_size=userblock) as handle:
        column = handle.create_dataset("x", (20,), h5py.vlen_dtype(np.dtype("i2")), **settings)
        for row, run in enumerate(runs):
            column[row] = run
    with h5py.File(tmp_path / "f") as handle, Mapped(tmp_path / "f") as mapped:
        found = Runs(mapped, handle["x"], "x", Heaps(mapped, userblock))
        for start, stop in ((0, 20), (5, 9), (17, 40)):
            flat, lengths = found.rows(start, stop)
            assert lengths.tolist() == [len(run) for run in runs[start:stop]]
            assert np.array_equal(flat, np.concatenate(runs[start:stop]))


def test_a_chunk_that_expands_beyond_its_size_is_refused(tmp_path):
    with h5py.File(tmp_path / "f", "w") as handle:
        column = handle.create_dataset("x", (8, 4), "i4", chunks=(8, 4), compression="gzip")
        column.id.write_direct_chunk((0, 0), zlib.compress(bytes(10_000_000)))
    with (
        h5py.File(tmp_path / "f") as handle,
        Mapped(tmp_path / "f") as mapped,
        pytest.raises(ShardError, match="chunk at .* is damaged"),
    ):
        Stored(mapped, handle["x"], handle["x"].dtype).rows(0, 8)
