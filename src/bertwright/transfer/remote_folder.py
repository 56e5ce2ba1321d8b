"""A folder at a remote address, accessed through fsspec. An artifact's manifest is written last and removed first, so
an artifact with a manifest is complete.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertwright.core.addresses import redact
from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.manifest import read_manifest
from bertwright.core.servers import file_system

BLOCK = 2**24
"""Bytes of a file that are read per request."""
Send = Callable[[str, Path], None]
"""Uploads a local file (the second argument) to a place in the remote folder (the first)."""


class RemoteFolder:
    """The current state of the storage; methods raise the exceptions of the storage's own package."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._system, self._root = file_system(url)
        # Only local file systems need a folder before a file can be written; a bucket is never created.
        self._folders = "file" in (self._system.protocol, *self._system.protocol)

    def folders(self, place: str) -> list[str]:
        """The sorted names of the entries directly in the folder `place`."""
        with suppress(FileNotFoundError):
            found = self._system.ls(self._at(place), detail=False)
            return sorted(path.rstrip("/").rpartition("/")[2] for path in found)
        return []

    def sizes(self, place: str) -> dict[str, int]:
        """The size in bytes of each file below the folder `place`, by its path relative to it."""
        # fsspec caches listings.
        self._system.invalidate_cache()
        root = self._at(place)
        with suppress(FileNotFoundError):
            found = self._system.find(root, detail=True)
            return {path[len(root) :].lstrip("/"): int(facts["size"]) for path, facts in found.items() if path != root}
        return {}

    def size(self, place: str) -> int | None:
        """The size of a file in bytes; None if there is none."""
        self._system.invalidate_cache()
        with suppress(FileNotFoundError):
            return int(self._system.size(self._at(place)))
        return None

    def manifest(self, place: str, stage: str) -> Mapping[str, Any] | None:
        """The manifest of the artifact at `place`, expected to be of `stage`; None if there is no valid one."""
        with tempfile.TemporaryDirectory() as scratch, suppress(ArtifactError):
            (Path(scratch) / MANIFEST).write_bytes(self.content(f"{place}/{MANIFEST}") or b"")
            return read_manifest(Path(scratch), stage)
        return None

    def has(self, artifact: Artifact, place: str) -> bool:
        """Whether exactly this artifact is at `place`; "" is the folder itself."""
        return self.content(f"{place}/{MANIFEST}".lstrip("/")) == (artifact.path / MANIFEST).read_bytes()

    def holds(self, place: str, sha256: str, read: Callable[[int], None] = lambda _: None) -> bool:
        """Whether the file at `place` has this SHA-256: reads it and calls `read` with the bytes of each block."""
        digest = hashlib.sha256()
        try:
            with self._system.open(self._at(place), "rb", block_size=BLOCK, cache_type="readahead") as handle:
                while block := handle.read(BLOCK):
                    digest.update(block)
                    read(len(block))
        except FileNotFoundError:
            return False
        return digest.hexdigest() == sha256

    def put(self, artifact: Artifact, place: str, beside: Mapping[str, bytes], send: Send | None = None) -> None:
        """Upload an artifact's files with `send`, and the extra files `beside`, to `place`; the manifest goes last."""
        manifest, within = (artifact.path / MANIFEST).read_bytes(), f"{place}/" if place else ""
        self._remove_file(f"{within}{MANIFEST}")
        for name in artifact.names():
            (send or self.send)(f"{within}{name}", artifact.path / name)
        for name, data in beside.items():
            self.write(f"{within}{name}", data)
        self.write(f"{within}{MANIFEST}", manifest)

    def send(self, place: str, path: Path, **options: Any) -> None:
        """Upload a local file to `place`; `options` are those of fsspec's `put_file`."""
        self._system.put_file(str(path), self._ready(place), **options)

    def write(self, place: str, data: bytes) -> None:
        """Write `data` to the file at `place` and read it back; `DataError` if it differs."""
        self._system.pipe_file(self._ready(place), data)
        if self.content(place) != data:
            raise DataError(
                f"{place} is damaged at {redact(self._url)}: the content read back differs from the content that was "
                "sent. Check the storage and the connection, and run the same command again: the file is sent again."
            )

    def get(self, place: str, target: Path) -> None:
        """Download the file at `place` to `target`."""
        self._system.get_file(self._at(place), str(target))

    def remove(self, place: str) -> None:
        """Remove a folder, its manifest first."""
        self._remove_file(f"{place}/{MANIFEST}")
        self._system.rm(self._at(place), recursive=True)

    def content(self, place: str) -> bytes | None:
        """The content of a file; None if there is none."""
        with suppress(FileNotFoundError):
            data: bytes = self._system.cat_file(self._at(place))
            return data
        return None

    def _ready(self, place: str) -> str:
        path = self._at(place)
        if self._folders:
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
        return path

    def _remove_file(self, place: str) -> None:
        with suppress(FileNotFoundError):
            self._system.rm_file(self._at(place))

    def _at(self, place: str) -> str:
        return f"{self._root.rstrip('/')}/{place}".removesuffix("/")
