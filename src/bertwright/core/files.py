"""Files that are whole or absent: atomic writes, JSON, and SHA-256."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError, DataError


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to a temporary sibling, fsync it and rename it to `path`; a crash leaves the old file or none.

    Processes on several machines may write the same file at once: one of them wins.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> Path:
    """Create `path` and its parents; an error says which path cannot be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def cannot_write(path: Path, error: OSError) -> DataError:
    """The error for a path that cannot be written."""
    reason = error.strerror or str(error)
    return DataError(
        f"cannot write {path}: {reason}. Choose a folder you may write to (--out DIR), or free space there."
    )


def sha256(path: Path) -> str:
    """The SHA-256 of a file as 64 hexadecimal digits, read in blocks of 1 MiB."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sha256_of(value: Any) -> str:
    """The SHA-256 of a JSON value in its canonical form (sorted keys, no blanks)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write indented UTF-8 JSON atomically."""
    write_atomic(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read UTF-8 JSON; a file that is not JSON is an `ArtifactError` naming it."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot read {path}: {error}. Restore the file, or build its stage again.") from error
