"""What is sent: the files of an exported model that its manifest or its provenance lists, each with the SHA-256 that is
written there. Nothing else in the folder is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, DataError, RecipeError
from bertwright.core.files import sha256_of
from bertwright.core.provenance import PROVENANCE, read_provenance
from bertwright.core.secrets import secret_by_form

_HF = "hf/"
_TEXTS = (".md", ".json")
"""Ends of the names of files in which something of the recipe or of this machine could stand."""
_ENTRIES = "tokenizer.json"
"""A file of the vocabulary's entries."""


@dataclass(frozen=True)
class ModelFile:
    """A file to send."""

    path: Path
    size: int
    sha256: str


@dataclass(frozen=True)
class Parcel:
    """The files of a model, verified."""

    folder: Path
    files: Mapping[str, ModelFile]
    """By name in the folder, with `/`."""
    left_here: list[str]
    """Names of files in the folder that are not sent, because nothing lists them."""
    fingerprint: str
    """The SHA-256 of the training that the model came from, or of the weights that it was imported from."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the names and hashes of the files: the same for the same model."""
        return sha256_of({name: file.sha256 for name, file in self.files.items()})

    @property
    def bytes(self) -> int:
        """Total size of the files."""
        return sum(file.size for file in self.files.values())


def parcel_of(path: Path) -> Parcel:
    """The model in a run folder, in the artifact of the stage `export`, or in a copy of its folder `hf`, after every
    hash was checked.

    Raises `ArtifactError` naming a file that is damaged or missing, `RecipeError` if there is no such model, and
    `DataError` if a text that would be sent has a secret in it.
    """
    if not path.is_dir():
        raise RecipeError(f"{path} is not a folder. Give a run folder, or the folder of an exported model.")
    artifact = next((each for each in (path / "export", path) if (each / MANIFEST).is_file()), None)
    if artifact is not None:
        parcel = _of_artifact(open_artifact(artifact, "export"))
    elif (path / PROVENANCE).is_file():
        parcel = _of_copy(path)
    else:
        raise RecipeError(
            f"{path} is no exported model: it has neither export/{MANIFEST} nor {PROVENANCE}, by which its files could "
            "be verified. Make it with: bertwright export RECIPE"
        )
    for name, file in parcel.files.items():
        if name.endswith(_TEXTS) and not name.endswith(_ENTRIES):
            _refuse_secret(file.path)
    return parcel


def _of_artifact(artifact: Artifact) -> Parcel:
    artifact.verify()
    hf = artifact.path / "hf"
    provenance = artifact.manifest["files"].get(f"{_HF}{PROVENANCE}")
    if provenance is None:
        raise ArtifactError(
            f"{hf} has no {PROVENANCE}: an older version of bertwright made it. Export the model again: bertwright "
            "export RECIPE"
        )
    read_provenance(hf)
    files = _files(hf, {name.removeprefix(_HF): artifact.manifest["files"][name] for name in artifact.names(_HF)})
    unlisted = [name.removeprefix(_HF) for name in artifact.unlisted_files() if name.startswith(_HF)]
    return Parcel(hf, files, unlisted, str(artifact.manifest["inputs"]["train"]))


def _of_copy(folder: Path) -> Parcel:
    provenance = read_provenance(folder)
    provenance.verify()
    files = _files(folder, {**provenance.files, PROVENANCE: provenance.own_entry()})
    # An imported network was not trained here; it is known by the files that it was imported from.
    made = str(provenance.stages["train"]["fingerprint"]) if provenance.stages else provenance.weights[0][1]
    return Parcel(folder, files, provenance.unlisted_files(), made)


def _files(folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, ModelFile]:
    return {name: ModelFile(folder / name, int(entry["size"]), str(entry["sha256"])) for name, entry in entries.items()}


def _refuse_secret(path: Path) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if secret := secret_by_form(line):
            raise DataError(
                f"line {number} of {path} has {secret} in it, so nothing is sent. Remove it from the recipe, or from "
                "the text that it is cited from, and export the model again."
            )
