"""Files from other machines: fetched once, whole or not at all.

A file grows beside its final place as `.NAME.part`, with a note of the size and version (ETag, time of change) that the
server gave; a broken transfer goes on where it stopped, as long as both are still the same.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from bertwright.core.errors import DataError
from bertwright.core.files import cannot_write, make_folder, read_json, sync_folder, write_json
from bertwright.core.log import Log
from bertwright.core.redact import shown
from bertwright.core.servers import Answer, Version, ask

_PAUSES = (1.0, 4.0, 15.0)
"""Seconds before each new try of a transfer that brought nothing."""


def fetch(url: str, target: Path, log: Log, sha1: str = "", sha256: str = "") -> Path:
    """Copy the file at `url` to `target` unless it is there, and return `target`.

    A transfer that was broken off, also by kill -9, goes on where it stopped; processes that want the same target wait
    for each other. With `sha1` or `sha256` (hexadecimal) the content is checked, also of a file that is there already:
    one that fails is moved to `NAME.bad` and is a `DataError`, as is a transfer that cannot be finished.
    """
    make_folder(target.parent)
    sums = {"sha1": sha1, "sha256": sha256}
    if target.is_file():
        _check(url, target, target, sums)
        return target
    part, note = (target.with_name(f".{target.name}.{suffix}") for suffix in ("part", "part.json"))
    with _alone(part) as handle:
        if target.is_file():  # made by another process while this one waited
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
    """The file at `path`, open to append, for this process alone."""
    while True:
        try:
            handle = open(path, "ab")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise cannot_write(path, error) from error
        with handle:
            # Processes on one machine that want the same file: one fetches it, the others wait and find it.
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(handle, path):  # not moved or removed by the process that this one waited for
                yield handle
                return


def _is_at(handle: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _transfer(url: str, handle: BinaryIO, note: Path, log: Log) -> None:
    """Append to `handle` until the file is whole; what breaks off is tried again as long as that brings something."""
    furthest, tries = handle.tell(), 0
    log.say(f"download: {shown(url)}{f', from byte {furthest:,} on' if furthest else ''}")
    while True:
        try:
            _append(url, handle, note, log)
            return
        except OSError as error:
            # As long as each try brings something, slow and shaky connections get there; only standstill counts.
            if handle.tell() > furthest:
                furthest, tries = handle.tell(), 0
                continue
            if tries == len(_PAUSES):
                raise DataError(
                    f"the transfer of {shown(url)} broke off at byte {handle.tell():,}: {shown(str(error))}. Check the "
                    "address and the connection, and run the same command again: it goes on there."
                ) from None
            time.sleep(_PAUSES[tries])
            tries += 1


def _append(url: str, handle: BinaryIO, note: Path, log: Log) -> None:
    known = Version(**read_json(note)) if note.is_file() else None
    start = handle.tell() if known and known.url == shown(url) and known.size else 0
    if not (known and start and start == known.size):
        answer = ask(url, start)
        if answer.start and answer.version != known:  # another file by now
            answer.stream.close()
            answer = ask(url, 0)
        if not answer.start:
            # A server that cannot begin in the middle, or another version: what is here does not fit before it.
            handle.seek(0)
            handle.truncate()
            write_json(note, asdict(answer.version))
        _write(answer, handle, log)
    os.fsync(handle.fileno())


def _write(answer: Answer, handle: BinaryIO, log: Log) -> None:
    total = answer.version.size
    done = answer.start
    for block in answer.blocks():
        try:
            handle.write(block)
            handle.flush()
        except OSError as error:
            raise cannot_write(Path(handle.name), error) from error
        done += len(block)
        log.progress("download", done / 1e6, (total or 0) / 1e6, "MB")
    if total is not None and done != total:
        raise OSError(f"{done:,} bytes came instead of {total:,}")


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
                f"{target.name} is not the file that {shown(url)} should give: its {name} is {actual}, the published "
                f"one {expected}. It was moved to {bad}; run the same command again to fetch it anew."
            )
