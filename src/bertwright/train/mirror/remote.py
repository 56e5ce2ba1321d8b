"""The folder at an address, as fsspec sees it: artifacts are put there with their manifest last, and taken away with it
first, so that what has a manifest is whole.

It is laid out as the run's `train`. Each checkpoint has the rows of metrics up to it beside its own files, so that none
is there without them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.manifest import read_manifest
from bertwright.core.servers import file_system
from bertwright.train.identity import CHECKPOINTS
from bertwright.train.state import State, state_of

ROWS = "metrics.jsonl"


class Remote:
    """The storage as it is now; its methods raise what its package raises."""

    def __init__(self, url: str) -> None:
        self._system, self._root = file_system(url)
        # Only these have folders that must be there before a file is; a bucket is never made.
        self._folders = "file" in (self._system.protocol, *self._system.protocol)

    def steps(self) -> list[str]:
        """The names of all checkpoints, sorted, also of those that are not whole."""
        with suppress(FileNotFoundError):
            found = self._system.ls(self._at(CHECKPOINTS), detail=False)
            return sorted(name for path in found if (name := path.rstrip("/").rpartition("/")[2]).startswith("step-"))
        return []

    def whole(self) -> dict[str, tuple[Mapping[str, Any], State]]:
        """Manifest and state of each checkpoint that has both, by its name."""
        found = dict[str, tuple[Mapping[str, Any], State]]()
        for name in self.steps():
            with tempfile.TemporaryDirectory() as scratch, suppress(ArtifactError):
                for file in (MANIFEST, "state.json"):
                    (Path(scratch) / file).write_bytes(self.content(f"{CHECKPOINTS}/{name}/{file}") or b"")
                manifest = read_manifest(Path(scratch), "checkpoint")
                found[name] = (manifest, state_of(Artifact(Path(scratch), manifest)))
        return found

    def has(self, artifact: Artifact, place: str) -> bool:
        """Whether this very artifact is at `place`; "" is the folder itself."""
        return self.content(f"{place}/{MANIFEST}".lstrip("/")) == (artifact.path / MANIFEST).read_bytes()

    def put(self, artifact: Artifact, place: str, beside: Mapping[str, bytes]) -> None:
        """Copy an artifact's files, and those `beside` them, to `place`, which is no artifact until then."""
        manifest, within = (artifact.path / MANIFEST).read_bytes(), f"{place}/" if place else ""
        self._remove_file(f"{within}{MANIFEST}")
        for name in artifact.names():
            self._put(f"{within}{name}", artifact.path / name)
        for name, data in beside.items():
            self._put(f"{within}{name}", data)
        self._put(f"{within}{MANIFEST}", manifest)

    def get(self, place: str, target: Path) -> None:
        """Copy a file to this machine."""
        self._system.get_file(self._at(place), str(target))

    def remove(self, place: str) -> None:
        """Remove a folder."""
        self._remove_file(f"{place}/{MANIFEST}")
        self._system.rm(self._at(place), recursive=True)

    def content(self, place: str) -> bytes | None:
        """The bytes of a file; None where there is none."""
        with suppress(FileNotFoundError):
            data: bytes = self._system.cat_file(self._at(place))
            return data
        return None

    def _put(self, place: str, data: Path | bytes) -> None:
        path = self._at(place)
        if self._folders:
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
        if isinstance(data, bytes):
            self._system.pipe_file(path, data)
        else:
            self._system.put_file(str(data), path)

    def _remove_file(self, place: str) -> None:
        with suppress(FileNotFoundError):
            self._system.rm_file(self._at(place))

    def _at(self, place: str) -> str:
        return f"{self._root.rstrip('/')}/{place}".removesuffix("/")
