"""The checkpoints in a remote folder that is laid out as the run's `train`.

Each has the rows of metrics up to it beside its own files, so that none is there without them.
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
from bertwright.core.remote_folder import RemoteFolder
from bertwright.train.identity import CHECKPOINTS
from bertwright.train.state import State, state_of

ROWS = "metrics.jsonl"


def steps(remote: RemoteFolder) -> list[str]:
    """The names of all checkpoints, sorted, also of those that are not whole."""
    return [name for name in remote.folders(CHECKPOINTS) if name.startswith("step-")]


def whole(remote: RemoteFolder) -> dict[str, tuple[Mapping[str, Any], State]]:
    """Manifest and state of each checkpoint that has both, by its name."""
    found = dict[str, tuple[Mapping[str, Any], State]]()
    for name in steps(remote):
        with tempfile.TemporaryDirectory() as scratch, suppress(ArtifactError):
            for file in (MANIFEST, "state.json"):
                (Path(scratch) / file).write_bytes(remote.content(f"{CHECKPOINTS}/{name}/{file}") or b"")
            manifest = read_manifest(Path(scratch), "checkpoint")
            found[name] = (manifest, state_of(Artifact(Path(scratch), manifest)))
    return found
