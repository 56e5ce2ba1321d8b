"""Downloads files from other machines: each one once, completely or not at all.

A partial file is stored next to its target as `.NAME.part`, with a note of the size and version (ETag, modification
time) that the server reported; an interrupted transfer resumes where it stopped if both are still the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from bertwright.core.addresses import redact
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import cannot_write, make_folder, read_json, sync_folder, write_json
from bertwright.core.log import Log
from bertwright.core.servers import Answer, Version, ask
from bertwright.core.signals import POLL_SECONDS, check_stop, pause

_PAUSES = (1.0, 4.0, 15.0)
"""Seconds to wait before each retry of a transfer that made no progress."""


def fetch(url: str, target: Path, log: Log, sha1: str = "", sha256: str = "") -> Path:
    """Download the file at `url` to `target` unless it exists, and return `target`.

    An interrupted transfer, even one ended by kill -9, resumes where it stopped; processes that want the same target
    wait for each other. With `sha1` or `sha256` (hexadecimal) the content is checked, including that of an existing
    file: a file that fails is moved to `NAME.bad` and raises `DataError`, as does a transfer that cannot be finished.
    """
    make_folder(target.parent)
    sums = {"sha1": sha1, "sha256": sha256}
    if target.is_file():
        _check(url, target, target, sums)
        return target
    part, note = (target.with_name(f".{target.name}.{suffix}") for suffix in ("part", "part.json"))
    with _alone(part) as handle:
        if target.is_file():  # downloaded by another process while this one waited
            part.unlink()
        else:
            _transfer(url, handle, note, log)
            _check(url, part, target, sums)
            os.replace(part, target)
            note.unlink()
            sync_folder(target.parent)
    return target


@contextmanager
def _alone(path: Path) -> Iterator[BinaryIO]:
    """The file at `path`, open for appending, at its end, and locked for this process."""
    while True:
        try:
            handle = open(path, "ab")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise cannot_write(path, error) from error
        with handle:
            # If processes on one machine want the same file, one downloads it; the others wait and find it.
            _lock(handle)
            if _is_at(handle, path):  # not moved or removed by the process that held the lock
                handle.seek(0, os.SEEK_END)  # which may have appended while this one waited
                yield handle
                return


def _lock(handle: BinaryIO) -> None:
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pause(POLL_SECONDS)


def _is_at(handle: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _transfer(url: str, handle: BinaryIO, note: Path, log: Log) -> None:
    """Append to `handle` until the file is complete; gives up only after `len(_PAUSES)` retries without progress."""
    furthest, tries = handle.tell(), 0
    log.say(f"download: {redact(url)}{f', from byte {furthest:,} on' if furthest else ''}")
    while True:
        try:
            _append(url, handle, note, log)
            return
        except OSError as error:
            # Slow and unreliable connections finish as long as attempts make progress; only stalls count.
            if handle.tell() > furthest:
                furthest, tries = handle.tell(), 0
                continue
            if tries == len(_PAUSES):
                raise DataError(
                    f"the transfer of {redact(url)} stopped at byte {handle.tell():,}: {redact(str(error))}. Check the "
                    "address and the connection, and run the same command again: it continues from there."
                ) from None
            pause(_PAUSES[tries])
            tries += 1


def _append(url: str, handle: BinaryIO, note: Path, log: Log) -> None:
    known = _known(note)
    start = handle.tell() if known and known.url == redact(url) and known.size else 0
    if not (known and start and start == known.size):
        answer = ask(url, start)
        if answer.start and answer.version != known:  # the file has changed since
            answer.stream.close()
            answer = ask(url, 0)
        if not answer.start:
            # The server cannot resume, or has another version: the partial file does not match, so start over.
            handle.seek(0)
            handle.truncate()
            write_json(note, asdict(answer.version))
        _write(answer, handle, log)
    os.fsync(handle.fileno())


def _known(note: Path) -> Version | None:
    """The version of a partial file; None if there is no note of it, or a damaged one: the file is then sent anew."""
    with suppress(ArtifactError, TypeError):
        return Version(**read_json(note))
    return None


def _write(answer: Answer, handle: BinaryIO, log: Log) -> None:
    total = answer.version.size
    for block in answer.blocks():
        check_stop()
        try:
            handle.write(block)
            handle.flush()
        except OSError as error:
            raise cannot_write(Path(handle.name), error) from error
        log.progress("download", handle.tell() / 1e6, (total or 0) / 1e6, "MB")
    if total is not None and handle.tell() != total:
        raise OSError(f"{handle.tell():,} bytes arrived instead of {total:,}")


def _check(url: str, path: Path, target: Path, sums: Mapping[str, str]) -> None:
    for name, expected in sums.items():
        if not expected:
            continue
        with path.open("rb") as handle:
            actual = hashlib.file_digest(handle, name).hexdigest()
        if actual != expected.lower():
            bad = target.with_name(f"{target.name}.bad")
            os.replace(path, bad)
            raise DataError(
                f"{target.name} is not the file that {redact(url)} should give: its {name} is {actual}, but the "
                f"published one is {expected}. It was moved to {bad}; run the same command again to download it again."
            )
