"""Checks every hash below a path, for `bertwright inspect PATH --verify`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import folders_below, read_json
from bertwright.pipeline.stage import STAGES

_NOT_SEALED = {"train": ("checkpoints/", "observers/", "profile/", f".{MANIFEST}.before-extension")}
"""Files that a stage keeps beside those that its manifest lists."""


def check_hashes(path: Path) -> dict[str, Any]:
    """Check every manifest below `path`, and that none is missing; returns the number of files read and, if there are
    any, the files that no manifest lists."""
    below = folders_below(path) if path.is_dir() else ()
    # A draft is not a result yet; its manifest is written before its folder gets the final name.
    folders = [f for f in below if not any(part.startswith(".") for part in f.relative_to(path).parts)]
    sealed = [folder for folder in folders if (folder / MANIFEST).is_file()]
    if not sealed:
        raise ArtifactError(f"there is no {MANIFEST} in or below {path}, so there is nothing to verify against.")
    _refuse_missing(path, [folder for folder in folders if folder.name.startswith("step-")])
    read, unlisted = 0, list[str]()
    for folder in sealed:
        artifact = open_artifact(folder)
        read += artifact.verify()
        beside = _NOT_SEALED.get(artifact.manifest["stage"], ())
        unlisted += [str(folder / name) for name in artifact.unlisted_files() if not name.startswith(beside)]
    return {"verified_files": read, **({"unlisted_files": unlisted} if unlisted else {})}


def _refuse_missing(path: Path, checkpoints: Sequence[Path]) -> None:
    """Raise `ArtifactError` if something finished in a run or training folder, such as one of its `checkpoints`, has
    lost its manifest."""
    summary = path / "summary.json"
    stages = json_object(summary).get("stages", {}) if summary.is_file() else {}
    if not isinstance(stages, dict):
        raise ArtifactError(f"{summary} is not valid: stages must be an object. Run the stage report again.")
    begun = [path / stage for stage in STAGES if stage != "report" and ((path / stage).is_dir() or stage in stages)]
    # A stage without a manifest looks as if it was never built; its files, or the summary, show that it was.
    for folder in [*begun, *checkpoints]:
        training = folder.name == "train" and not (folder / "model").is_dir() and folder.name not in stages
        # Training that is extended after its end sets its manifest aside, and is not damaged.
        extended = (folder / f".{MANIFEST}.before-extension").is_file()
        if not (folder / MANIFEST).is_file() and not training and not extended:
            raise ArtifactError(
                f"{folder} has no {MANIFEST}, so its files cannot be checked. Restore it, or move {folder} away and "
                "run the same command again."
            )


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; `ArtifactError` if it holds something else."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is not valid: it does not contain a JSON object. Restore the file.")
    return value
