"""Reading the manifest of an artifact, and what to advise where something is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, sha256_of

MANIFEST = "manifest.json"
_REBUILD = "Move {folder} away and run the same command again: the stage is built anew from its inputs."
_REMEDIES = {
    "train": f"Remove {{folder}}/{MANIFEST} and run the same command again: the model is written again from the newest "
    "checkpoint.",
    "checkpoint": "An older whole checkpoint is used instead.",
}
"""For the stages whose folders hold what cannot be built anew from the inputs."""


def read_manifest(folder: Path, stage: str | None) -> dict[str, Any]:
    """The manifest of `folder`, which a `stage` (None: any) made; one that does not match its seal is refused."""
    stage = stage or ("checkpoint" if folder.name.startswith("step-") else folder.name)
    try:
        manifest = read_json(folder / MANIFEST)
    except ArtifactError as error:
        raise ArtifactError(f"{folder / MANIFEST} is damaged: {error.__cause__}. {remedy(folder, stage)}") from error
    seal = manifest.pop("sha256", None) if isinstance(manifest, dict) else None
    if seal != sha256_of(manifest):
        raise ArtifactError(f"{folder / MANIFEST} is damaged: it does not match its own seal. {remedy(folder, stage)}")
    result: dict[str, Any] = manifest
    return result


def remedy(folder: Path, stage: str) -> str:
    """What to do when something in the artifact `folder` of `stage` is damaged or missing."""
    return _REMEDIES.get(stage, _REBUILD).format(folder=folder)
