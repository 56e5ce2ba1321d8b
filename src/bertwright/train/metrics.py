"""Training metrics as JSON lines; lines past a checkpoint are cut when training resumes from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Metrics:
    """Appends rows to a JSONL file, each flushed so that a reader sees it at once."""

    def __init__(self, path: Path, total_steps: int) -> None:
        """Open `path` for appending after dropping every line of a step beyond `total_steps` (and a torn last line)."""
        self._path = path
        kept = [line for line in _whole_lines(path) if json.loads(line)["total_steps"] <= total_steps]
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes(b"".join(kept))
        os.replace(temporary, path)
        self._handle = path.open("ab")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row."""
        self._handle.write(json.dumps(row).encode() + b"\n")
        self._handle.flush()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *error: object) -> None:
        """Flush to disk and close."""
        os.fsync(self._handle.fileno())
        self._handle.close()


def _whole_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
