"""What is taken for a damaged file, and what for a disk or a memory that failed."""

import errno
import gzip
import zlib
from copy import copy
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import DataError
from bertwright.formats.errors import ShardError, reading

FILE = Path("part-1.tfrecord")
HDF5 = "Can't synchronously read data (file read failed: time = now, filename = 'x', errno = 5, error message = '...')"


@each_row(
    ("error", "says"),
    [
        (OSError(errno.EIO, "Input/output error"), "part-1.tfrecord: Input/output error. Check the disk"),
        (OSError(errno.ESTALE, "Stale file handle"), "part-1.tfrecord: Stale file handle. Check the disk"),
        (PermissionError(errno.EACCES, "Permission denied"), "part-1.tfrecord: Permission denied. .*correct the perm"),
        (OSError(HDF5), "part-1.tfrecord: Input/output error. Check the disk"),
        (MemoryError(), "part-1.tfrecord cannot be read: this process has run out of memory"),
        (
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            "part-1.tfrecord cannot be read: this process has run out of memory",
        ),
    ],
)
def test_disk_and_memory_are_not_the_files_fault(error: Exception, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught, reading(FILE):
        raise error
    assert not isinstance(caught.value, ShardError)


@each_row(
    "error",
    [
        OSError("Unable to synchronously open file (truncated file: eof = 9, sblock->base_addr = 0)"),
        FileNotFoundError(errno.ENOENT, "No such file or directory"),
        gzip.BadGzipFile("CRC check failed"),
        zlib.error("Error -3 while decompressing data"),
        EOFError("Compressed file ended"),
        ValueError("metadata"),
    ],
)
def test_damage_is_the_files_own(error: Exception) -> None:
    with pytest.raises(ShardError, match="part-1.tfrecord: cannot be read") as caught, reading(FILE):
        raise error
    assert caught.value.file == FILE


def test_it_comes_out_of_a_worker_process_as_it_went_in() -> None:
    error = ShardError(FILE, "has no rows")
    again = copy(error)  # by what a pipe between processes makes an exception again
    assert (type(again), str(again), again.file, again.fault) == (ShardError, str(error), FILE, "has no rows")
