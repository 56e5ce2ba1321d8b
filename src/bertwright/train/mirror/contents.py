"""What a mirror holds, a remote folder laid out like the run's `train` folder: checkpoints, and ONNX files of finished
phases, which belong to no checkpoint.

Each checkpoint folder also has the metrics rows up to it, so no checkpoint exists without them. Each ONNX file has its
SHA-256 beside it, written after it, so an incomplete or damaged copy is recognised.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import sha256
from bertwright.core.log import Log
from bertwright.core.manifest import read_manifest
from bertwright.core.remote_folder import RemoteFolder
from bertwright.train.settings.identity import CHECKPOINTS
from bertwright.train.state import State, state_of

ROWS = "metrics.jsonl"


def steps(remote: RemoteFolder) -> list[str]:
    """Return the names of all checkpoints, sorted, including incomplete ones."""
    return [name for name in remote.folders(CHECKPOINTS) if name.startswith("step-")]


def whole(remote: RemoteFolder) -> dict[str, tuple[Mapping[str, Any], State]]:
    """Return the manifest and state of each checkpoint that has both, by name."""
    found = dict[str, tuple[Mapping[str, Any], State]]()
    for name in steps(remote):
        with tempfile.TemporaryDirectory() as scratch, suppress(ArtifactError):
            for file in (MANIFEST, "state.json"):
                (Path(scratch) / file).write_bytes(remote.content(f"{CHECKPOINTS}/{name}/{file}") or b"")
            manifest = read_manifest(Path(scratch), "checkpoint")
            found[name] = (manifest, state_of(Artifact(Path(scratch), manifest)))
    return found


DIGEST = ".sha256"


def copy_graphs(remote: RemoteFolder, out: Path) -> None:
    """Upload those in `out`, the run's `train` folder, that the mirror does not have with this content."""
    for path in sorted(out.glob("phase-*.onnx")):
        digest = sha256(path).encode()
        if remote.content(path.name + DIGEST) != digest:
            remote.send(path.name, path)
            remote.write(path.name + DIGEST, digest)


def bring_graphs(remote: RemoteFolder, out: Path, log: Log) -> None:
    """Download all of them to `out`; one that is incomplete or damaged is only reported."""
    for name in (name for name in remote.folders("") if name.startswith("phase-") and name.endswith(".onnx")):
        target, draft = out / name, out / f".{name}.draft"
        remote.get(name, draft)
        if remote.content(name + DIGEST) == sha256(draft).encode():
            draft.rename(target)
        else:
            draft.unlink()
            log.say(
                f"warning: {name} of train.mirror is damaged, so this run lacks it. Training does not need it; the "
                "network at the end of that phase is lost unless you have a copy."
            )
