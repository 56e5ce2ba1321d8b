"""An artifact: a folder with a manifest, finished or absent.

A stage builds into a draft next to its final place and `publish`es it: `manifest.json` is written last and fsynced,
and the draft is renamed. The manifest holds the stage's identity, its counts, and the size and SHA-256 of each file;
it is sealed by its own SHA-256.
The same identity is never built twice. A changed identity moves the old folder aside under its fingerprint.
Nothing finished is deleted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.files import remove, remove_leftovers, sha256, sha256_of, sync_folder, write_json
from bertwright.core.log import Log
from bertwright.core.manifest import MANIFEST as MANIFEST
from bertwright.core.manifest import changes, read_manifest, remedy
from bertwright.core.staging import archive_path, drafts, open_draft, publish, remove_scratch, seconds_before

_verified: set[tuple[Path, str]] = set()


@dataclass(frozen=True)
class Artifact:
    """A finished folder and its manifest."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the identity it was built from."""
        return str(self.manifest["fingerprint"])

    @property
    def counts(self) -> Mapping[str, Any]:
        """What the stage counted while building."""
        counts: Mapping[str, Any] = self.manifest["counts"]
        return counts

    def names(self, prefix: str = "") -> list[str]:
        """The names of its files (relative, with `/`) that begin with `prefix`, sorted."""
        return sorted(name for name in self.manifest["files"] if name.startswith(prefix))

    def file(self, name: str) -> Path:
        """The path of one of its files, after checking its SHA-256 (once per process)."""
        path = self.path / name
        entry = self.manifest["files"].get(name)
        if entry is None:
            raise ArtifactError(
                f"{self.path} has no file {name!r}; its manifest lists {', '.join(self.names()) or 'nothing'}."
            )
        # Once per process: a run opens the files of a corpus several times, and hashing reads them completely.
        if (path, entry["sha256"]) not in _verified:
            self._check_size(name)
            if sha256(path) != entry["sha256"]:
                advice = remedy(self.path, self.manifest["stage"])
                raise ArtifactError(f"{path} is damaged: its SHA-256 differs from the one in {MANIFEST}. {advice}")
            _verified.add((path, entry["sha256"]))
        return path

    def unlisted_files(self) -> list[str]:
        """The names of files in its folder that the manifest does not list, sorted; hidden ones too. Folders that are
        artifacts themselves (checkpoints) are left out."""
        inner = [path.parent for path in self.path.rglob(MANIFEST) if path.parent != self.path]
        files = (path for path in self.path.rglob("*") if path.is_file() and not any(map(path.is_relative_to, inner)))
        names = (path.relative_to(self.path).as_posix() for path in files)
        return sorted(name for name in names if name not in self.manifest["files"] and name != MANIFEST)

    def check_sizes(self) -> None:
        """Raise `ArtifactError` if a file is missing or its size differs from the manifest."""
        for name in self.manifest["files"]:
            self._check_size(name)

    def _check_size(self, name: str) -> None:
        path, expected = self.path / name, self.manifest["files"][name]["size"]
        actual = path.stat().st_size if path.is_file() else None
        if actual != expected:
            state = "is missing" if actual is None else f"has {actual:,} bytes instead of {expected:,}"
            raise ArtifactError(f"{path} {state}. {remedy(self.path, self.manifest['stage'])}")

    def verify(self) -> int:
        """Check every file's SHA-256 now; returns the number of files read."""
        for name in self.manifest["files"]:
            _verified.discard((self.path / name, self.manifest["files"][name]["sha256"]))
            self.file(name)
        return len(self.manifest["files"])


def is_tensorflow_checkpoint(path: Path) -> bool:
    """Whether `path` is a TensorFlow checkpoint: its folder, one of its files, or what their names begin with."""
    if path.is_dir():
        return any(path.glob("*.index")) and any(path.glob("*.data-*-of-*"))
    beginning = path.name.removesuffix(".index").removesuffix(".meta").partition(".data-")[0]
    return path.with_name(f"{beginning}.index").is_file()


def open_artifact(path: Path, stage: str | None = None) -> Artifact:
    """The artifact in folder `path`; `ArtifactError` unless its manifest is valid and all files have their sizes."""
    if not (path / MANIFEST).is_file():
        if is_tensorflow_checkpoint(path):
            raise ArtifactError(
                f"{path} is a TensorFlow checkpoint, and no artifact of a stage. A training starts from it "
                "(train.init_from)."
            )
        raise ArtifactError(
            f"{path} is not a finished artifact: it has no {MANIFEST}. Run the stage that makes it first."
        )
    artifact = Artifact(path, read_manifest(path, stage))
    if stage is not None and artifact.manifest["stage"] != stage:
        raise ArtifactError(
            f"{path} was made by the stage {artifact.manifest['stage']!r}, but a {stage!r} folder is needed here."
        )
    artifact.check_sizes()
    return artifact


def build(out: Path, identity: Identity, log: Log, make: Callable[[Path], dict[str, Any]]) -> Artifact:
    """The artifact of this identity at `out`: opened if it exists, else built by `make(draft) -> counts`.

    An interrupted build continues in its draft; `seconds` in the manifest is the total of all its attempts. Drafts of
    other identities are named, and removed once this artifact is there.
    """
    existing = open_artifact(out) if (out / MANIFEST).is_file() else None
    if existing is None or existing.fingerprint != identity.fingerprint:
        if existing:
            log.say(f"{identity.stage}: built again, because {'; '.join(changes(existing.manifest, identity))}")
        draft = _sealed_draft(out, identity, log, make)
        publish(draft, out, existing.fingerprint if existing else None)
        existing = open_artifact(out)
        for left in drafts(out):
            remove(left)
    remove_scratch(out)
    return existing


def _sealed_draft(out: Path, identity: Identity, log: Log, make: Callable[[Path], dict[str, Any]]) -> Path:
    # Changing a setting and changing it back costs nothing: the earlier folder is still there.
    kept = archive_path(out, identity.fingerprint)
    if (kept / MANIFEST).is_file():
        log.say(f"{identity.stage}: {kept.name} was built with these settings and inputs, and is used again")
        open_artifact(kept)
        return kept
    for left in drafts(out, but=identity.fingerprint):
        log.say(
            f"{identity.stage}: {left.name} is what an interrupted run with other settings made; it is removed when "
            f"this one is finished"
        )
    draft = open_draft(out, identity.fingerprint)
    before, started = seconds_before(draft), time.monotonic()
    counts = make(draft)
    seal(draft, identity, counts, before + time.monotonic() - started)
    return draft


def seal(
    folder: Path, identity: Identity, counts: Mapping[str, Any], seconds: float, only: Sequence[str] = ("*",)
) -> None:
    """Write `manifest.json`, the last file of an artifact, after every other file is on disk.

    The files that match one of the patterns `only` are the result. `disk` in the manifest records the bytes of the
    files and those of the hidden scratch files next to them (which stay until the artifact is published).
    """
    remove_leftovers(folder)
    everything = [p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST]
    names = sorted(p.relative_to(folder).as_posix() for p in everything if not _hidden(p, folder))
    names = [name for name in names if any(fnmatchcase(name, pattern) for pattern in only)]
    files: dict[str, dict[str, Any]] = {}
    for name in names:
        path = folder / name
        with open(path, "rb") as handle:
            # Before the manifest is written: after a power cut it must not list files that never reached the disk.
            os.fsync(handle.fileno())
        files[name] = {"size": path.stat().st_size, "sha256": sha256(path)}
    for parent in {(folder / name).parent for name in names}:
        sync_folder(parent)
    manifest = {
        "stage": identity.stage,
        "version": identity.version,
        "fingerprint": identity.fingerprint,
        "config": identity.config,
        "changed": identity.changed,
        "inputs": dict(identity.inputs),
        "counts": dict(counts),
        "seconds": round(seconds, 3),
        "disk": {
            "bytes": sum(file["size"] for file in files.values()),
            "scratch_bytes": sum(p.stat().st_size for p in everything if _hidden(p, folder)),
        },
        "files": files,
    }
    write_json(folder / MANIFEST, {**manifest, "sha256": sha256_of(manifest)})
    sync_folder(folder)


def _hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
