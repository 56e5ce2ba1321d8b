"""Training metrics as JSON lines; lines past a checkpoint are cut when training resumes from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_bytes, remove_leftovers, write_atomic
from bertwright.core.json_values import parse_json
from bertwright.train.shapes import row_type


class Metrics:
    """Appends rows to a JSONL file, each flushed so that a reader sees it at once."""

    def __init__(self, path: Path, total_steps: int) -> None:
        """Open `path` for appending after dropping every line of a step beyond `total_steps` (and a torn last line)."""
        # Steps past the checkpoint are trained again: their rows would stand twice.
        kept = rows_until(path, total_steps)
        remove_leftovers(path.parent, f".{path.name}.*.tmp")
        # Neither a crash nor a power cut here must lose the rows of the whole training.
        write_atomic(path, b"".join(kept))
        self._path, self._handle = path, path.open("ab")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row."""
        self._handle.write(_line(row))
        self._handle.flush()

    def complete(self, total_steps: int, further: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give the last row more values, where it is that of the step `total_steps`; returns it, or None."""
        rows = _rows(self._path)
        if not rows or rows[-1][0]["total_steps"] != total_steps:
            return None
        row = {**rows[-1][0], **further}
        write_atomic(self._path, b"".join([*(line for _, line in rows[:-1]), _line(row)]))
        self._handle.close()  # of the file that was
        self._handle = self._path.open("ab")
        return row

    def sync(self) -> None:
        """Make the rows so far survive a power cut: called before a checkpoint is published."""
        os.fsync(self._handle.fileno())

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *error: object) -> None:
        """Flush to disk and close."""
        self.sync()
        self._handle.close()


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file of metrics, without a torn last line; `ArtifactError` where a line is no row."""
    return [row for row, _ in _rows(path)]


def rows_until(path: Path, total_steps: int) -> list[bytes]:
    """The lines of `path`, as they stand there, up to a step over all phases."""
    return [line for row, line in _rows(path) if row["total_steps"] <= total_steps]


def saved_before(path: Path) -> bool:
    """Whether rows follow one that was written with a checkpoint, so that a checkpoint must have existed."""
    # The last row may have been written just before the checkpoint it speaks of, and the process killed between.
    return any(row["saved"] for row, _ in _rows(path)[:-1])


def _rows(path: Path) -> list[tuple[dict[str, Any], bytes]]:
    """Each whole line of `path`, read and raw; a line that is not a row of metrics is an `ArtifactError`."""
    lines = read_bytes(path).splitlines(keepends=True) if path.exists() else []
    return [(_row(path, number, line), line) for number, line in enumerate(lines, 1) if line.endswith(b"\n")]


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = row_type().validate_python(parse_json(line))
        return {**row, "saved": row["saved"]}
    except (ValueError, KeyError) as error:
        raise ArtifactError(
            f"{path}:{number} is damaged: it is not a row of metrics. Remove that line and run the same command again; "
            "the weights do not depend on it."
        ) from error
