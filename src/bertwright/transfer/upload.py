"""Copy the finished parts of a run folder to an address, which then has the layout of a run folder.

Each artifact is sent file by file with its manifest last, and the summary of the run is sent last of all, so that an
interrupted upload never looks complete. A file counts as sent once it was read back and has the SHA-256 of the
manifest; a file that is already there with that size and hash is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from bertwright.core.addresses import check_address, redact
from bertwright.core.errors import ArtifactError, BertwrightError, DataError, RecipeError, system_error
from bertwright.core.log import Log
from bertwright.core.numbers import size_of
from bertwright.transfer.other_run import refuse_other
from bertwright.transfer.parts import RECIPE, REPORT, Part, RunParts
from bertwright.transfer.remote_folder import RemoteFolder


def upload(parts: RunParts, url: str, log: Log, verify: bool = False) -> Sent:
    """Copy the parts of a run folder to `url`.

    With `verify`, parts completed by an earlier upload are read back as well. Raises `ArtifactError` if `url` holds
    another run, and `DataError` if `url` cannot be written to or the upload is interrupted; the same call then
    continues it.
    """
    try:
        check_address(url, "the URL")
    except ValueError as error:
        raise RecipeError(f"{error}.") from None
    session = UploadSession(parts, url, log, verify)
    try:
        session.send_all()
    except BertwrightError:
        raise
    except Exception as error:  # each storage has its own exceptions
        raise session.interruption(error) from None
    return session.sent


_BEFORE = (RECIPE, "forecast.json")
_TRIES = 5
"""Attempts to copy a checkpoint before it is pruned."""


@dataclass
class Sent:
    """The result of an upload."""

    url: str
    parts: list[str] = field(default_factory=list)
    """Parts that are now complete at the address."""
    files: int = 0
    """Number of files sent, except manifests and the rows of metrics next to a checkpoint."""
    bytes: int = 0
    """Total size of those files."""
    there_before: int = 0
    """Bytes that were already there and not sent again."""


class UploadSession:
    """An upload in progress."""

    def __init__(self, parts: RunParts, url: str, log: Log, verify: bool) -> None:
        self._parts, self._run, self._log, self._verify = parts, parts.run, log, verify
        self._total, self._done, self._place = sum(part.bytes for part in parts.parts), 0, "anything"
        self.sent = Sent(url)

    def send_all(self) -> None:
        """Send everything that is missing at the address, in the order of the parts."""
        self._remote, parts = RemoteFolder(self.sent.url), self._parts.parts
        refuse_other(self._remote, self.sent.url, self._run, parts)  # before anything is sent
        self._send_plain(_BEFORE)
        for is_checkpoint, group in groupby(parts, lambda part: part.is_checkpoint):
            if is_checkpoint:
                self._send_checkpoints(list(group), with_rows=all(part.place != "train" for part in parts))
            else:
                for part in group:
                    self._put(part)
        if self._parts.report and self._send_plain(REPORT):
            self.sent.parts.append("report")

    def _put(self, part: Part) -> None:
        self._place = part.place
        if not self._verify and self._is_there(part):
            self.sent.there_before += part.bytes
            self._advance(part.bytes)
        else:
            self._remote.put(part.artifact, part.place, part.beside, partial(self._send, part))
        self.sent.parts.append(part.place)

    def _send_checkpoints(self, listed: Sequence[Part], with_rows: bool) -> None:
        rest = self._total - self._done - sum(part.bytes for part in listed)
        # A running training saves and prunes checkpoints during the upload of this and earlier parts.
        for _ in range(_TRIES):
            due = [part for part in self._parts.checkpoints() if part.place not in self.sent.parts]
            self._total = self._done + sum(part.bytes for part in due) + rest
            if due and with_rows:
                self._send_rows(due[-1])
            if all(self._put_unless_pruned(part) for part in due):
                return
        raise ArtifactError(
            f"{self._run / 'train'} removes its checkpoints faster than they can be copied to {self.sent.url}: each "
            f"of {_TRIES} was removed before it was copied. Copy them when training has ended, or train with a larger "
            "train.keep_checkpoints, or with train.mirror."
        )

    def _put_unless_pruned(self, part: Part) -> bool:
        before = self._done
        try:
            self._put(part)
        except (ArtifactError, FileNotFoundError):
            if part.artifact.path.is_dir():
                raise
            self._done = before
            return False
        return True

    def _send_rows(self, newest: Part) -> None:
        """Write the files of rows where a training resumed at the address expects them, unless that is further."""
        there = self._remote.folders(Path(newest.place).parent.as_posix())
        if not self._remote.manifest("train", "train") and max([*there, ""]) <= newest.artifact.path.name:
            for name, rows in newest.beside.items():
                self._write(f"train/{name}", rows)

    def interruption(self, error: Exception) -> BertwrightError:
        """Convert an error of the storage or the local disk; the message says how much has been copied."""
        local = error if isinstance(error, OSError) and Path(str(error.filename)).is_relative_to(self._run) else None
        if local and (ours := system_error(local)):
            return ours
        reason = redact(str(error).strip()).partition("\n")[0]  # Azure's messages are a page long
        there = f" {size_of(self._done)} of {size_of(self._total)} are copied." if self._done else ""
        return DataError(
            f"cannot write {self._place} to {self.sent.url} ({type(error).__name__}: {reason}).{there} "
            f"{_remedy(error)} Then run the same command again: complete files are not sent again."
        )

    def _is_there(self, part: Part) -> bool:
        sizes = self._remote.sizes(part.place)
        files = part.artifact.manifest["files"].items()
        return self._remote.has(part.artifact, part.place) and all(
            sizes.get(name) == int(entry["size"]) for name, entry in files
        )

    def _send(self, part: Part, place: str, path: Path) -> None:
        """Ensure that `place` holds a file of `part` with the hash in its manifest."""
        self._place, name = place, path.relative_to(part.artifact.path).as_posix()
        entry = part.artifact.manifest["files"][name]
        size, sha256 = int(entry["size"]), entry["sha256"]
        if self._remote.size(place) == size and self._is_intact(place, sha256, size):
            self.sent.there_before += size
        else:
            self._remote.send(place, path, callback=_progress(self._show))
            if not self._is_intact(place, sha256, size):
                part.artifact.file(name)  # raises if the local file is the damaged one
                raise DataError(
                    f"{place} is damaged at {self.sent.url}: the file read back has a different SHA-256 than the file "
                    "that was sent. Check the storage and the connection, and run the same command again: the file is "
                    "sent again."
                )
            self.sent.files, self.sent.bytes = self.sent.files + 1, self.sent.bytes + size
        self._advance(size)

    def _is_intact(self, place: str, sha256: str, size: int) -> bool:
        read = 0

        def count(length: int) -> None:
            nonlocal read
            read += length
            self._log.progress("read back", read / 1e6, size / 1e6, "MB")

        return self._remote.holds(place, sha256, count)

    def _send_plain(self, names: Sequence[str]) -> bool:
        """Ensure that those of the named files that the run folder has are at the address; returns whether it has
        all."""
        here = [name for name in names if (self._run / name).is_file()]
        for name in here:
            self._write(name, (self._run / name).read_bytes())
        return len(here) == len(names)

    def _write(self, place: str, data: bytes) -> None:
        """Ensure that `place`, a file outside of any artifact, holds `data`."""
        self._place = place
        self._total += len(data)
        if self._remote.content(place) == data:
            self.sent.there_before += len(data)
        else:
            self._remote.write(place, data)
            self.sent.files, self.sent.bytes = self.sent.files + 1, self.sent.bytes + len(data)
        self._advance(len(data))

    def _advance(self, size: int) -> None:
        self._done += size
        self._show(0)

    def _show(self, sent: int) -> None:
        self._log.progress("upload", (self._done + sent) / 1e6, self._total / 1e6, "MB")


def _progress(show: Callable[[int], None]) -> Any:
    from fsspec.callbacks import Callback

    return Callback(hooks={"show": lambda size, value, **_: show(value)})


def _remedy(error: Exception) -> str:
    kind = type(error).__name__
    if isinstance(error, FileNotFoundError) or "NotFound" in kind:
        return "Create the bucket or the container first (bertwright does not create it), or correct the address."
    if isinstance(error, PermissionError) or "Credential" in kind or "Authentication" in kind:
        return "Set credentials in the environment that allow writing there (AWS_..., AZURE_STORAGE_CONNECTION_STRING)."
    return "Check the connection and the address."
