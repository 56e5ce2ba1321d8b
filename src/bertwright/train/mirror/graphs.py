"""Copies the ONNX files of finished phases, which belong to no checkpoint, to the mirror and back.

Each has its SHA-256 beside it, written after it, so an incomplete or damaged copy is recognised.
"""

from __future__ import annotations

from pathlib import Path

from bertwright.core.files import sha256
from bertwright.core.log import Log
from bertwright.core.remote_folder import RemoteFolder

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
