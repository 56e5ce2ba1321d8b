"""Files that are complete or absent: atomic writes, bounded reads, JSON files, SHA-256, and walks through folders."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from bertwright.core.errors import SHORTER, ArtifactError, DataError, RecipeError, memory_error
from bertwright.core.json_values import parse_json
from bertwright.core.signals import check_stop

Shape = TypeVar("Shape")

MAX_JSON = 32 * 2**20
"""Maximum size of a JSON file in bytes; the manifest of a corpus of 100,000 shards has 25 MB."""


def write_atomic(path: Path, data: bytes, sync: bool = True) -> None:
    """Write `data` to a temporary sibling, fsync it and rename it to `path`; a crash leaves the old file or none.

    If processes on several machines write the same file at once, one of them wins. Without `sync`, a power cut may
    leave a damaged file: use it only for scratch files whose hash is kept elsewhere.
    """
    with _replace(path, _temporary(path), sync) as temporary:
        temporary.write_bytes(data)


@contextmanager
def atomic_file(path: Path, sync: bool = True) -> Iterator[Path]:
    """Yield a path in a temporary folder next to `path` to write and close, for libraries that need a path; then rename
    the file to `path`.

    Guarantees are those of `write_atomic`. If the body fails, the temporary folder is removed and `path` is unchanged.
    `DataError` if the folder is not writable.
    """
    # A folder, because a library may use temporary files of its own, which would stay after a kill.
    folder = _temporary(path)
    try:
        try:
            folder.mkdir()
        except OSError as error:
            raise cannot_write(path, error) from error
        with _replace(path, folder / path.name, sync) as temporary:
            yield temporary
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary(path: Path) -> Path:
    # A file name may have 255 bytes, and a character up to 4.
    return path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.tmp")


@contextmanager
def _replace(path: Path, temporary: Path, sync: bool) -> Iterator[Path]:
    """Yield `temporary` to write and close, and rename it to `path`; `sync` as for `write_atomic`."""
    check_stop()
    try:
        # Created before a library gets the path, so that an unwritable folder is reported as our own error.
        temporary.touch(exist_ok=False)
        mode = temporary.stat().st_mode
        yield temporary
        with suppress(OSError):  # a file system without modes
            temporary.chmod(mode)  # safetensors creates files with mode 600, but a group may share the folder
        if sync:
            with open(temporary, "rb") as handle:
                # Before the rename: otherwise a power cut could leave an empty file under the final name.
                os.fsync(handle.fileno())
        # Atomic on POSIX: a reader sees the old file or the new one.
        os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        # Also when the body raised: a failed writer leaves nothing behind.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path, pattern: str = "**/.*.tmp") -> None:
    """Remove the temporary files and folders of killed writers from `folder`, to which no other process may be
    writing."""
    for leftover in list(folder.glob(pattern)):
        if leftover.is_dir():
            # NFS keeps a file that a process has open, and so its folder.
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all it contains; a link is removed, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Give a file a second name, which outlives the first; copy it where the file system has no hard links, or is
    another one."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` survive a power cut."""
    # A rename changes the folder, not the file: fsync of the file alone may leave the old name after a power cut.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> Path:
    """Create `path` and its parents; `DataError` if it cannot be written, `RecipeError` if it is an address."""
    refuse_address(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def refuse_address(path: Path) -> None:
    """Raise `RecipeError` for an address of another machine; used as a path, it would become a local folder `s3:`."""
    if scheme := re.match(r"([a-z][a-z0-9+]+:)/+", str(path), re.IGNORECASE):
        raise RecipeError(
            f"{scheme[1]}//{str(path)[scheme.end() :]} is an address, and results are written to local folders only. "
            "Give a path on this machine (or of a mounted file system), and copy the folder afterwards."
        )


def refuse_unwritable(path: Path) -> None:
    """Raise `DataError` if no file can be written at `path`: before the work whose result it is for."""
    temporary = _temporary(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> DataError:
    """The error for a path that cannot be written, or for a lack of memory if that is the cause."""
    if error.errno == errno.ENOMEM and (full := memory_error(error)):
        return full
    place = "Choose a folder you may write to (--out DIR), or free space there."
    remedy = SHORTER if error.errno == errno.ENAMETOOLONG else place
    return DataError(f"cannot write {path}: {error.strerror or error}. {remedy}")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add `path` to the `OSError`s raised inside: a failed `read` does not name its file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """The content of a file; `ValueError` if it has more than `most` bytes, `OSError` naming it if reading fails."""
    with naming(path), open(path, "rb") as handle:
        # Reading one byte more than allowed detects a file that is too large without reading all of it.
        data = handle.read() if most is None else handle.read(most + 1)
    if most is not None and len(data) > most:
        raise ValueError(f"it is larger than {most:,} bytes")
    return data


def read_text(path: Path, most: int, encoding: str = "utf-8") -> str:
    """The text of a file of at most `most` bytes, with line ends converted to newlines; errors as for `read_bytes`,
    and `ValueError` if it is not in `encoding`."""
    return read_bytes(path, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def sha256(path: Path) -> str:
    """The SHA-256 of a file as 64 hexadecimal digits, read in blocks."""
    with naming(path), open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sha256_of(value: Any) -> str:
    """The SHA-256 of a JSON value in canonical form (sorted keys, no whitespace)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # File names need not be UTF-8: Python represents such bytes as lone surrogates, which JSON can only escape.
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def write_json(path: Path, value: Any, sync: bool = True) -> None:
    """Write indented UTF-8 JSON atomically; `sync` as for `write_atomic`."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_atomic(path, text.encode("utf-8", "backslashreplace"), sync)


class Known(dict[str, Any]):
    """A JSON object that knows its file; looking up a missing key raises `ArtifactError`."""

    path: Path

    def __missing__(self, key: str) -> Any:
        raise ArtifactError(f"{self.path} lacks {key!r}. Restore the file, or build its stage again.")


def read_json(path: Path) -> Any:
    """Read JSON of at most `MAX_JSON` bytes; `ArtifactError` if the file is missing or `parse_json` rejects it.

    Objects are returned as `Known`. A disk error while reading is an `OSError` that names the file.
    """

    def known(values: dict[str, Any]) -> Known:
        tagged = Known(values)
        tagged.path = path
        return tagged

    try:
        return parse_json(read_bytes(path, MAX_JSON), known)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError) as error:
        raise ArtifactError(f"cannot read {path}: {error}. Restore the file, or build its stage again.") from error


def read_typed(path: Path, shape: TypeAdapter[Shape]) -> Shape:
    """Read JSON of at most `MAX_JSON` bytes as a `shape`; `ArtifactError` naming the file and the key if it differs."""
    try:
        return shape.validate_json(json.dumps(read_json(path)), strict=True)
    except ValidationError as error:
        raise invalid_file(path, error) from error


def invalid_file(path: Path, error: ValidationError) -> ArtifactError:
    """The error for a file whose values have the wrong types or sizes."""
    fault = error.errors(include_url=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return ArtifactError(
        f"{path} is not valid: {place + ': ' if place else ''}{fault['msg']}. Restore the file, or build its stage "
        "again."
    )


def folders_below(folder: Path) -> Iterator[Path]:
    """Yield `folder` and each folder below it, once, also those that only links lead to, which `Path.rglob` skips: they
    come after all others.

    `OSError` for a folder that exists, but cannot be read.
    """
    seen, linked = set[tuple[int, int]](), [folder]
    for start in linked:
        for place, names, _ in os.walk(start, onerror=_raise_unless_gone):
            status = os.stat(place)
            here = status.st_dev, status.st_ino
            # A link may lead to a folder that contains it, or to one that has been yielded.
            if here in seen:
                names.clear()
                continue
            seen.add(here)
            yield Path(place)
            names.sort()
            linked += [path for name in names if (path := Path(place, name)).is_symlink()]


def _raise_unless_gone(error: OSError) -> None:
    # `os.walk` would skip the folder. One that is gone may be a checkpoint of a training that runs.
    if not isinstance(error, FileNotFoundError):
        raise error
