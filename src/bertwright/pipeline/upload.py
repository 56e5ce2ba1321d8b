"""The finished parts of a run folder, copied to an address, which is then laid out as the run folder.

Each artifact is sent file by file and its manifest last, the summary of the run last of all, so what was broken off
never looks whole. A file counts as sent when it was read back and has the SHA-256 of the manifest; one that is there
already, with that size and hash, is not sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bertwright.core.address import check_address
from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import ArtifactError, BertwrightError, DataError, RecipeError
from bertwright.core.log import Log
from bertwright.core.redact import shown
from bertwright.core.remote_folder import RemoteFolder
from bertwright.pipeline.parts import PARTS, REPORT, Part, finished_parts

_BEFORE = ("recipe.toml", "forecast.json")
_BESIDE = ("checkpoints", "observers", "profile")
"""Folders in `train` that are no part of that artifact."""


@dataclass
class Sent:
    """What an upload has done."""

    url: str
    parts: list[str] = field(default_factory=list)
    """What is there whole now."""
    files: int = 0
    """Files that were sent."""
    bytes: int = 0
    """Of those files."""
    there_before: int = 0
    """Bytes that were not sent, because they were there."""


def upload(run: Path, url: str, parts: Sequence[str], log: Log, verify: bool = False) -> Sent:
    """Copy `parts` (of `PARTS`; none: all that are finished) of the run folder `run` to `url`.

    With `verify` what an earlier upload has finished is read back as well. Raises `ArtifactError` where a part is not
    finished or `url` holds another run, `DataError` where it cannot be written to or breaks off: the same call goes on.
    """
    try:
        check_address(url, "the URL")
    except ValueError as error:
        raise RecipeError(f"{error}.") from None
    artifacts = finished_parts(run, parts, log)
    sending = _Sending(run, url, sum(part.bytes for part in artifacts), log)
    try:
        sending.send_all(artifacts, "report" in (parts or PARTS), verify)
    except BertwrightError:
        raise
    except Exception as error:  # each storage has exceptions of its own
        raise sending.broken_off(error) from None
    return sending.sent


class _Sending:
    """An upload under way."""

    def __init__(self, run: Path, url: str, total: int, log: Log) -> None:
        self._run, self._total, self._log = run, total, log
        self._done, self._place = 0, "anything"
        self.sent = Sent(url)

    def send_all(self, parts: Sequence[Part], report: bool, verify: bool) -> None:
        """Send what is not there, in this order."""
        self._remote = RemoteFolder(self.sent.url)
        for part in parts:  # all of them, before anything is sent
            self._refuse_other(part)
        self._send_plain(_BEFORE)
        for part in parts:
            self._place = part.place
            if not verify and self._is_there(part):
                self.sent.there_before += part.bytes
                self._advance(part.bytes)
            else:
                self._remote.put(part.artifact, part.place, part.beside, partial(self._send, part))
            self.sent.parts.append(part.place)
        if report and self._send_plain(REPORT):
            self.sent.parts.append("report")

    def broken_off(self, error: Exception) -> DataError:
        """The error for what the storage has raised, and what is there by now."""
        said = shown(str(error).strip()).partition("\n")[0]  # Azure's go on for a page
        there = f" {self._done / 1e6:,.1f} of {self._total / 1e6:,.1f} MB are there." if self._done else ""
        return DataError(
            f"cannot write {self._place} to {self.sent.url} ({type(error).__name__}: {said}).{there} "
            f"{_remedy(error)} Then run the same command again: what is there whole is not sent again."
        )

    def _refuse_other(self, part: Part) -> None:
        names = {*part.artifact.names(), *part.beside, MANIFEST}
        there = self._remote.manifest(part.place, str(part.artifact.manifest["stage"]))
        found = self._remote.sizes(part.place)
        strange = [name for name in found if name not in names and name.split("/")[0] not in _BESIDE]
        if there and there["fingerprint"] != part.artifact.fingerprint:
            what = f"{part.place} there was made with other settings, or of other inputs"
        elif strange:
            what = f"{part.place} there has {strange[0]}, which is no file of this run"
        else:
            return
        raise ArtifactError(
            f"{self.sent.url} holds another run, and nothing there is overwritten: {what}. Give an address of its own, "
            "or remove what is there."
        )

    def _is_there(self, part: Part) -> bool:
        sizes = self._remote.sizes(part.place)
        files = part.artifact.manifest["files"].items()
        return self._remote.has(part.artifact, part.place) and all(
            sizes.get(name) == int(entry["size"]) for name, entry in files
        )

    def _send(self, part: Part, place: str, path: Path) -> None:
        """Have a file of `part` at `place`, as its manifest says."""
        self._place, name = place, path.relative_to(part.artifact.path).as_posix()
        size, sha256 = (
            int(part.artifact.manifest["files"][name]["size"]),
            part.artifact.manifest["files"][name]["sha256"],
        )
        if self._remote.size(place) == size and self._right(place, sha256, size):
            self.sent.there_before += size
        else:
            self._remote.send(place, path, callback=_told(self._show))
            if not self._right(place, sha256, size):
                part.artifact.file(name)  # says so if it is the one here that is damaged
                raise DataError(
                    f"{place} is damaged at {self.sent.url}: it was sent, and read back it has another SHA-256. See to "
                    "the storage and the connection, and run the same command again: it is sent again."
                )
            self.sent.files, self.sent.bytes = self.sent.files + 1, self.sent.bytes + size
        self._advance(size)

    def _right(self, place: str, sha256: str, size: int) -> bool:
        read = 0

        def count(length: int) -> None:
            nonlocal read
            read += length
            self._log.progress("read back", read / 1e6, size / 1e6, "MB")

        return self._remote.holds(place, sha256, count)

    def _send_plain(self, names: Sequence[str]) -> bool:
        """Have those of these files of the run folder there that it has; whether it has all."""
        here = [name for name in names if (self._run / name).is_file()]
        for self._place in here:
            data = (self._run / self._place).read_bytes()
            if self._remote.content(self._place) != data:
                self._remote.write(self._place, data)
        return len(here) == len(names)

    def _advance(self, size: int) -> None:
        self._done += size
        self._show(0)

    def _show(self, sent: int) -> None:
        self._log.progress("upload", (self._done + sent) / 1e6, self._total / 1e6, "MB")


def _told(show: Any) -> Any:
    from fsspec.callbacks import Callback

    return Callback(hooks={"show": lambda size, value, **_: show(value)})


def _remedy(error: Exception) -> str:
    kind = type(error).__name__
    if isinstance(error, FileNotFoundError) or "NotFound" in kind:
        return "Make the bucket or the container first, as bertwright makes none, or mend the address."
    if isinstance(error, PermissionError) or "Credential" in kind or "Authentication" in kind:
        return "Set credentials in the environment that may write there (AWS_..., AZURE_STORAGE_CONNECTION_STRING)."
    return "See to the connection and the address."
