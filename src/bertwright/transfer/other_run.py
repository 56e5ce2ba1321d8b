"""Whether an address holds another run than the one to be copied there, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import ArtifactError
from bertwright.core.manifest import read_manifest
from bertwright.transfer.parts import CHECKPOINTS, RECIPE, REPORT, STAGES, STEPS, Part
from bertwright.transfer.remote_folder import RemoteFolder

_BESIDE = (CHECKPOINTS, "observers", "profile")
"""Folders inside `train` that are not part of that artifact."""
Manifests = Mapping[str, Mapping[str, Any]]


def refuse_other(remote: RemoteFolder, url: str, run: Path, parts: Sequence[Part]) -> None:
    """Raise `ArtifactError` if any complete part at `url`, whether it is to be sent or not, belongs to another run than
    `run`, or if the places of `parts` contain files that `parts` do not have."""
    steps = [name for name in remote.folders(STEPS) if name.startswith("step-")]
    places = [*STAGES, *(f"{STEPS}/{name}" for name in steps)]
    there = {place: manifest for place in places if (manifest := remote.manifest(place, _stage(place)))}
    here = _here(run)
    what = _differing(there, here) or _strange(remote, parts) or _unknown(remote, run, there, here)
    if what:
        raise ArtifactError(
            f"{url} holds another run, which is not overwritten: {what}. Use a different address for this run, or "
            "remove that run."
        )


def _stage(place: str) -> str:
    return "checkpoint" if place.startswith(STEPS) else place


def _here(run: Path) -> Manifests:
    found = {}
    for folder in [*(run / name for name in STAGES), *(run / STEPS).glob("step-*")]:
        place = folder.relative_to(run).as_posix()
        # Parts that are damaged here, or pruned by a running training, cannot be compared.
        with suppress(ArtifactError, FileNotFoundError):
            found[place] = read_manifest(folder, _stage(place))
    return found


def _differing(there: Manifests, here: Manifests) -> str:
    ours = next((manifest["fingerprint"] for place, manifest in here.items() if place.startswith(STEPS)), None)
    for place, manifest in there.items():
        checkpoint, own = place.startswith(STEPS), here.get(place)
        expected = ours if checkpoint else own and own["fingerprint"]
        if expected not in (None, manifest["fingerprint"]):
            if place == "train" and own and _checkpoints(there) & _checkpoints(here):
                return _other_length(manifest["counts"]["steps"], own["counts"]["steps"])
            return f"{place} there was made with other settings or from other inputs"
        # Checkpoints with equal settings may still come from different trainings.
        if checkpoint and own and own["files"] != manifest["files"]:
            return f"{place} there is from another training with the same settings"
    return ""


def _checkpoints(manifests: Manifests) -> set[str]:
    """Fingerprints of the checkpoints, which cover all training settings except the lengths of the phases."""
    return {manifest["fingerprint"] for place, manifest in manifests.items() if place.startswith(STEPS)}


def _other_length(theirs: int, ours: int) -> str:
    if ours > theirs:
        return f"train there ended after {theirs:,} steps, and this run is an extension of it to {ours:,}"
    if ours < theirs:
        return f"train there is an extension of this run, from {ours:,} to {theirs:,} steps"
    return "train there has other weights, from another training with the same settings"


def _strange(remote: RemoteFolder, parts: Sequence[Part]) -> str:
    for part in parts:
        names = {*part.artifact.names(), *part.beside, MANIFEST}
        for name in remote.sizes(part.place):
            if name not in names and not (part.place == "train" and name.split("/")[0] in _BESIDE):
                return f"{part.place} there has {name}, which is not a file of this run"
    return ""


def _unknown(remote: RemoteFolder, run: Path, there: Manifests, here: Manifests) -> str:
    """Compare the recipes if the remote parts have no counterpart here to tell which run they belong to."""
    theirs, own = remote.content(RECIPE), run / RECIPE
    if theirs is None or not own.is_file() or theirs == own.read_bytes():
        return ""
    absent = [place for place in there if place not in here and not (place.startswith(STEPS) and _checkpoints(here))]
    if absent:
        return f"{RECIPE} there is different, and this run has no finished {absent[0]}"
    reported = any(remote.size(name) is not None for name in REPORT)
    return f"{RECIPE} there is different, and a report is next to it" if reported and not there else ""
