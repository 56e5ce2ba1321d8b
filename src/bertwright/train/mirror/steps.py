"""The checkpoints in a remote folder with the layout of the run's `train` folder.

Each checkpoint folder also holds the metrics rows up to it, so no checkpoint exists without them.
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
