"""Training metrics as JSON lines; rows past a checkpoint are cut when training resumes from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_bytes, remove_leftovers, write_atomic
from bertwright.core.json_values import parse_json
from bertwright.train.shapes import row_type
from bertwright.transfer.parts import GUESSES, ROWS


class RowFile:
    """Appends rows to a JSONL file; each row is flushed so that readers see it at once."""

    def __init__(self, path: Path, kept: Sequence[bytes]) -> None:
        """Open `path` for appending, after removing all lines except `kept`."""
        remove_leftovers(path.parent, f".{path.name}.*.tmp")
        # Atomic, so that neither a crash nor a power cut here loses the rows of the entire training.
        write_atomic(path, b"".join(kept))
        self._path, self._handle = path, path.open("ab")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row."""
        self._handle.write(_line(row))
        self._handle.flush()

    def sync(self) -> None:
        """Flush the rows so far to disk, so they survive a power cut; called before a checkpoint is published."""
        os.fsync(self._handle.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Flush to disk and close."""
        self.sync()
        self._handle.close()


class Metrics(RowFile):
    """The rows of metrics; see `RowFile`."""

    def __init__(self, path: Path, total_steps: int) -> None:
        """Open `path` for appending, after dropping rows of steps beyond `total_steps` and an incomplete last line."""
        # Steps past the checkpoint are trained again, so their rows would appear twice.
        super().__init__(path, rows_until(path, total_steps))

    def complete(self, total_steps: int, further: Mapping[str, Any]) -> dict[str, Any] | None:
        """Add values to the last row if it is the row of step `total_steps`; return that row, or None."""
        rows = _rows(self._path)
        if not rows or rows[-1][0]["total_steps"] != total_steps:
            return None
        row = {**rows[-1][0], **further}
        write_atomic(self._path, b"".join([*(line for _, line in rows[:-1]), _line(row)]))
        self._handle.close()  # this handle is of the replaced file
        self._handle = self._path.open("ab")
        return row


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL metrics file, without an incomplete last line; raise `ArtifactError` for an invalid
    line."""
    return [row for row, _ in _rows(path)]


def rows_until(path: Path, total_steps: int) -> list[bytes]:
    """Return the raw lines of `path` up to `total_steps`, a step counted over all phases."""
    return [line for row, line in _rows(path) if row["total_steps"] <= total_steps]


def guesses_until(path: Path, total_steps: int) -> list[tuple[int, bytes]]:
    """The step and the line of each row of guesses up to a step; without damaged ones, because nothing depends on
    them."""
    kept = []
    # A start from step 0 asks again.
    for line in read_bytes(path).splitlines(keepends=True) if path.exists() and total_steps else []:
        with suppress(ValueError, TypeError, KeyError):
            step = int(parse_json(line)["total_steps"])
            if line.endswith(b"\n") and step <= total_steps:
                kept.append((step, line))
    return kept


def rows_beside(train: Path, total_steps: int) -> dict[str, bytes]:
    """The files of rows in the folder `train`, by name, as a copy of a checkpoint of this step has them beside it."""
    rows = {ROWS: b"".join(rows_until(train / ROWS, total_steps))}
    guesses = b"".join(line for _, line in guesses_until(train / GUESSES, total_steps))
    return rows | ({GUESSES: guesses} if guesses else {})


def saved_before(path: Path) -> bool:
    """Whether rows follow one that was written with a checkpoint, so that a checkpoint must have existed."""
    # The last row is ignored: the process may have been killed after writing it, before the checkpoint it mentions.
    return any(row["saved"] for row, _ in _rows(path)[:-1])


def _rows(path: Path) -> list[tuple[dict[str, Any], bytes]]:
    """Return each complete line of `path`, parsed and raw; raise `ArtifactError` for a line that is not a metrics
    row."""
    lines = read_bytes(path).splitlines(keepends=True) if path.exists() else []
    return [(_row(path, number, line), line) for number, line in enumerate(lines, 1) if line.endswith(b"\n")]


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = row_type().validate_python(parse_json(line))
        return {**row, "saved": row["saved"]}
    except (ValueError, KeyError) as error:
        raise ArtifactError(
            f"{path}:{number} is damaged: the line is not a row of metrics. Remove that line and run the same command "
            "again; the weights do not depend on it."
        ) from error
