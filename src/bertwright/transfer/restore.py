"""Restores checkpoints from the mirror if the local folder has none.

When a machine is lost, its folder is lost with it. Without this, the same command on another machine would restart at
step 0 although the mirror has checkpoints.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bertwright.core.addresses import redact
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, BertwrightError, CheckpointError, DataError
from bertwright.core.files import make_folder, sha256, sync_folder, write_atomic
from bertwright.core.log import Log
from bertwright.core.manifest import read_manifest
from bertwright.transfer.mirror import DIGEST, MirroredTraining
from bertwright.transfer.parts import BESIDE, CHECKPOINTS
from bertwright.transfer.remote_folder import RemoteFolder


def restore(mirrored: MirroredTraining, log: Log) -> None:
    """Download the checkpoints at the address, with their rows and the ONNX files of finished phases, unless
    the local folder has some.

    Raises `ArtifactError` if those at the address are of other settings, `CheckpointError` if none of them is valid,
    and `DataError` if the content of the address cannot be determined and there are none here; if there are some, this
    is only logged.
    """
    url, out = mirrored.url, mirrored.out
    has_some = any((out / CHECKPOINTS).glob("step-*"))
    try:
        remote = RemoteFolder(url)
        names = sorted(mirrored.complete(remote), reverse=True)
        if names and not has_some:
            _restore_checkpoints(remote, url, names, out, log)
            _restore_graphs(remote, out, log)
    except BertwrightError as error:
        if has_some and isinstance(error, DataError):
            log.say(f"warning: train.mirror: {error}")
            return
        raise
    except Exception as error:  # each storage backend has its own exceptions
        reason = f"train.mirror {url} cannot be read ({type(error).__name__}: {redact(str(error))})"
        if not has_some:
            raise DataError(
                f"{reason}, so it is unknown whether it has checkpoints to continue from; {out} has none. Check the "
                "address and the credentials in the environment, or leave train.mirror out."
            ) from None
        log.say(f"warning: {reason}. Training goes on, and each later checkpoint tries again.")


def _restore_checkpoints(remote: RemoteFolder, url: str, names: list[str], out: Path, log: Log) -> None:
    # The newest first: a run killed meanwhile can still resume from it.
    restored = [name for name in names if _restore_checkpoint(remote, name, out, log)]
    if not restored:
        raise CheckpointError(
            f"none of the {len(names)} checkpoints at train.mirror {url} is complete, so training cannot continue. "
            "Restore one from a copy, or leave train.mirror out to start again from step 0."
        )
    log.say(f"train: downloaded from {url}: {', '.join(reversed(restored))}")


def _restore_checkpoint(remote: RemoteFolder, name: str, out: Path, log: Log) -> bool:
    """Restore one checkpoint, writing its rows to disk before it; return whether it was valid."""
    folder, place = out / CHECKPOINTS, f"{CHECKPOINTS}/{name}"
    draft = folder / f".{name}.draft"
    make_folder(draft)
    remote.get(f"{place}/{MANIFEST}", draft / MANIFEST)
    beside = {name: remote.content(f"{place}/{name}") for name in BESIDE}
    try:
        for file in Artifact(draft, read_manifest(draft, "checkpoint")).names():
            remote.get(f"{place}/{file}", draft / file)
            with (draft / file).open("rb") as handle:
                os.fsync(handle.fileno())  # a power cut must not leave a checkpoint with unwritten files
        open_artifact(draft, "checkpoint").verify()
    except ArtifactError as error:
        log.say(f"train: skipping the damaged checkpoint {name} of the mirror: {error}")
        shutil.rmtree(draft)
        return False
    if not any(folder.glob("step-*")):
        for file, rows in beside.items():
            if rows is not None:
                write_atomic(out / file, rows)
    draft.rename(folder / name)
    sync_folder(folder)
    return True


def _restore_graphs(remote: RemoteFolder, out: Path, log: Log) -> None:
    """Download the ONNX files of finished phases to `out`; one that is incomplete or damaged is only reported."""
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
