"""Where a published model comes from, in a file beside its weights: the hashes of its source texts, the settings and
inputs of each stage, and the SHA-256 of each file of the folder.

The folder keeps this file wherever it is copied, so that a copy can be verified without the run that it was made in.
The fingerprint of a stage is computed anew from its settings and inputs, and the inputs are those of the stages before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import invalid_file, read_json, sha256, sha256_of, write_json
from bertwright.core.manifest import Entry, Hash, Name, Word
from bertwright.core.shapes import Count
from bertwright.core.stage_context import STAGE_NAMES

PROVENANCE = "provenance.json"
RESTORE = "Copy the folder again from where it was published, or from the run that made it."
"""What to do about a damaged copy."""


class _Stage(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)
    version: Count
    fingerprint: Hash
    changed: dict[Word, Any]
    inputs: dict[Word, Word]


class _Source(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)
    name: Word
    sha256: Hash


class _Weights(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)
    name: Word
    sha256: Hash
    licence: str


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)
    sources: list[_Source]
    weights: list[_Weights] = []
    stages: dict[Word, _Stage]
    files: dict[Name, Entry]


@dataclass(frozen=True)
class Provenance:
    """What `PROVENANCE` says of the published folder that it lies in."""

    folder: Path
    sources: Sequence[tuple[str, str]]
    """Name and SHA-256 of each source of texts."""
    stages: Mapping[str, Mapping[str, Any]]
    """Of each stage before the export: version, fingerprint, changed settings and inputs."""
    files: Mapping[str, Mapping[str, Any]]
    """Size and SHA-256 of each file besides this one."""
    weights: Sequence[tuple[str, str, str]] = ()
    """Name, SHA-256 and licence ("": not stated) of the weights that it was imported from, or training started from."""

    def own_entry(self) -> dict[str, Any]:
        """Size and SHA-256 of this file itself."""
        path = self.folder / PROVENANCE
        return {"size": path.stat().st_size, "sha256": sha256(path)}

    def verify(self) -> int:
        """Check every file's SHA-256; returns the number of files read. Raises `ArtifactError` naming the file."""
        for name, entry in self.files.items():
            path = self.folder / name
            if not path.is_file():
                raise ArtifactError(f"{path} is missing: {PROVENANCE} lists it. {RESTORE}")
            if path.stat().st_size != entry["size"] or sha256(path) != entry["sha256"]:
                raise ArtifactError(f"{path} is damaged: its SHA-256 differs from the one in {PROVENANCE}. {RESTORE}")
        return len(self.files)

    def unlisted_files(self) -> list[str]:
        """The names of files in the folder that are not listed, sorted, without hidden ones: a clone has those too."""
        names = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())
        hidden = (name for name in names if not any(part.startswith(".") for part in name.split("/")))
        return sorted(name for name in hidden if name not in {*self.files, PROVENANCE})


def write_provenance(
    folder: Path,
    stages: Iterable[Artifact],
    sources: Iterable[tuple[str, str]],
    weights: Iterable[tuple[str, str, str]] = (),
) -> None:
    """Write `PROVENANCE` into a complete folder that was made from the artifacts `stages` of texts in `sources`, each a
    name and a SHA-256, and from `weights` of others, each a name, a SHA-256 and a licence."""
    keys = ("version", "fingerprint", "changed", "inputs")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): path for path in paths}
    document: dict[str, Any] = {
        "sources": [{"name": name, "sha256": digest} for name, digest in sources],
        "stages": {each.manifest["stage"]: {key: each.manifest[key] for key in keys} for each in stages},
        "files": {name: {"size": path.stat().st_size, "sha256": sha256(path)} for name, path in files.items()},
    }
    if others := [{"name": name, "sha256": digest, "licence": licence} for name, digest, licence in weights]:
        document["weights"] = others
    write_json(folder / PROVENANCE, {**document, "sha256": sha256_of(document)})


def read_provenance(folder: Path) -> Provenance:
    """What the file in `folder` says; `ArtifactError` if it is damaged, or if a fingerprint in it is not that of the
    settings and inputs beside it, or a stage not made from the one before it."""
    path = folder / PROVENANCE
    document = read_json(path)
    seal = document.pop("sha256", None) if isinstance(document, dict) else None
    if seal is None or seal != sha256_of(document):
        raise ArtifactError(f"{path} is damaged: its content does not match the SHA-256 that it contains. {RESTORE}")
    try:
        _Document.model_validate(document)
    except ValidationError as error:
        raise invalid_file(path, error) from error
    stages = document["stages"]
    for name, stage in stages.items():
        if stage["fingerprint"] != sha256_of([name, stage["version"], stage["changed"], stage["inputs"]]):
            raise ArtifactError(
                f"{path} is damaged: the fingerprint of {name} does not match its settings and inputs. {RESTORE}"
            )
    for stage, given in broken_links(stages):
        raise ArtifactError(
            f"{path} is damaged: {stage} was made from another {given} than the one that it lists. {RESTORE}"
        )
    sources = [(source["name"], source["sha256"]) for source in document["sources"]]
    weights = [(each["name"], each["sha256"], each["licence"]) for each in document.get("weights", ())]
    return Provenance(folder, sources, stages, document["files"], weights)


def broken_links(stages: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each stage that was not made from another one beside it that it names as input, with that one; `stages` has the
    `fingerprint` and the `inputs` of each. Stages that are not there, but that several were made from, must be the same
    for all of them: the second one is then named."""
    known = {name: str(stage["fingerprint"]) for name, stage in stages.items()}
    for name, stage in stages.items():
        for given, fingerprint in stage["inputs"].items():
            if given in STAGE_NAMES and known.setdefault(given, fingerprint) != fingerprint:
                yield name, given
