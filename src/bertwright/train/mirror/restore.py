"""Restores checkpoints from the mirror if the local folder has none.

When a machine is lost, its folder is lost with it. Without this, the same command on another machine would restart at
step 0 although the mirror has checkpoints.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.addresses import shown
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.changes import changes, remedy_of
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError, BertwrightError, CheckpointError, DataError
from bertwright.core.files import make_folder, sync_folder, write_atomic
from bertwright.core.log import Log
from bertwright.core.manifest import read_manifest
from bertwright.core.remote_folder import RemoteFolder
from bertwright.train.mirror.contents import ROWS, bring_graphs, whole
from bertwright.train.settings.identity import CHECKPOINTS


def restore(url: str, out: Path, identity: Identity, log: Log) -> None:
    """Copy the checkpoints at `url`, with their metrics rows and the ONNX files of finished phases, to `out`, the run's
    `train` folder, unless it has some.

    Raises `ArtifactError` if those at `url` are of other settings, `CheckpointError` if none of them is valid, and
    `DataError` if the content of `url` cannot be determined and `out` has none; if `out` has some, this is only logged.
    """
    has_some = any((out / CHECKPOINTS).glob("step-*"))
    try:
        remote = RemoteFolder(url)
        there = whole(remote)
        refuse_others({name: manifest for name, (manifest, _) in there.items()}, identity, url)
        if there and not has_some:
            _bring_all(remote, url, sorted(there, reverse=True), out, log)
            bring_graphs(remote, out, log)
    except BertwrightError as error:
        if has_some and isinstance(error, DataError):
            log.say(f"warning: train.mirror: {error}")
            return
        raise
    except Exception as error:  # each storage backend has its own exceptions
        reason = f"train.mirror {url} cannot be read ({type(error).__name__}: {shown(str(error))})"
        if not has_some:
            raise DataError(
                f"{reason}, so it is unknown whether it has checkpoints to continue from; {out} has none. Check the "
                "address and the credentials in the environment, or leave train.mirror out."
            ) from None
        log.say(f"warning: {reason}. Training goes on, and each later checkpoint tries again.")


def refuse_others(there: Mapping[str, Mapping[str, Any]], identity: Identity, url: str) -> None:
    """Raise `ArtifactError`, naming the keys, if manifests at a mirror are not of the training `identity`."""
    for name in sorted(there, reverse=True)[:1]:
        if changed := changes(there[name], identity):
            raise ArtifactError(
                f"train.mirror {url} holds checkpoints trained with other settings, and they are never discarded: "
                f"{'; '.join(changed)}. {remedy_of(changed)}, or use a different address for this run."
            )


def _bring_all(remote: RemoteFolder, url: str, names: list[str], out: Path, log: Log) -> None:
    # The newest first: a run killed meanwhile can still resume from it.
    brought = [name for name in names if _bring(remote, name, out, log)]
    if not brought:
        raise CheckpointError(
            f"none of the {len(names)} checkpoints at train.mirror {url} is complete, so training cannot continue. "
            "Restore one from a copy, or leave train.mirror out to start again from step 0."
        )
    log.say(f"train: downloaded from {url}: {', '.join(reversed(brought))}")


def _bring(remote: RemoteFolder, name: str, out: Path, log: Log) -> bool:
    """Restore one checkpoint, writing its metrics rows to disk before it; return whether it was valid."""
    final, draft, place = out / CHECKPOINTS / name, out / CHECKPOINTS / f".{name}.draft", f"{CHECKPOINTS}/{name}"
    make_folder(draft)
    remote.get(f"{place}/{MANIFEST}", draft / MANIFEST)
    rows = remote.content(f"{place}/{ROWS}")
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
    if not any((out / CHECKPOINTS).glob("step-*")):
        write_atomic(out / ROWS, rows or b"")
    draft.rename(final)
    sync_folder(out / CHECKPOINTS)
    return True
