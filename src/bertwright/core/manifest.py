"""The manifest of an artifact: read and checked, compared with an identity, and what to do if something is damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bertwright.core.config import Identity, differences
from bertwright.core.errors import ArtifactError
from bertwright.core.files import invalid_file, read_json, sha256_of
from bertwright.core.shapes import Count, Number, counts_of, settings_of

MANIFEST = "manifest.json"
_REBUILD = "Move {folder} away and run the same command again: the stage is built again from its inputs."
_REMEDIES = {
    "train": f"Remove {{folder}}/{MANIFEST} and run the same command again: the model is written again from the newest "
    "checkpoint.",
    "checkpoint": "An older complete checkpoint is used instead.",
}
"""Advice for stages whose folders contain what cannot be rebuilt from the inputs."""


def _inside(name: str) -> str:
    parts = PurePosixPath(name).parts
    # A manifest may come from anywhere: no name in it may point outside the folder, to be read or linked.
    if not name.isprintable() or "/".join(parts) != name or {"/", "..", "."} & {*parts, *parts[:1]} or "\\" in name:
        raise ValueError(f"{name[:80]!r} is not a file inside the folder")
    return name


Hash = Annotated[str, Field(strict=True, pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, Field(strict=True, min_length=1, max_length=1024), AfterValidator(_inside)]
Word = Annotated[str, Field(strict=True, max_length=1024)]


class Entry(BaseModel):
    """A file of an artifact."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    size: Count
    sha256: Hash


class _Disk(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)
    bytes: Count
    scratch_bytes: Count


class Manifest(BaseModel):
    """The content of a manifest, besides its seal."""

    model_config = ConfigDict(frozen=True, defer_build=True)
    stage: Word
    version: Count
    fingerprint: Hash
    config: dict[Word, Any]
    """The settings that determine the result; the stage's `shapes.py` has the types of those that others read."""
    changed: dict[Word, Any]
    """Those settings that differed from their defaults, which are hashed."""
    inputs: dict[Word, Word]
    """The fingerprint of each input, by name."""
    counts: dict[Word, Any]
    """What the stage counted; the stage's `shapes.py` has the types."""
    seconds: Annotated[Number, Field(ge=0)]
    disk: _Disk
    files: dict[Name, Entry]


def read_manifest(folder: Path, stage: str | None) -> dict[str, Any]:
    """The manifest of `folder`; `ArtifactError` if it is damaged, with the advice for `stage` (None: unknown)."""
    # An unreadable manifest does not name its stage; the name of its folder does, for the advice.
    stage = stage or ("checkpoint" if folder.name.startswith("step-") else folder.name)
    try:
        manifest = read_json(folder / MANIFEST)
    except ArtifactError as error:
        raise ArtifactError(f"{folder / MANIFEST} is damaged: {error.__cause__}. {remedy(folder, stage)}") from error
    seal = manifest.pop("sha256", None) if isinstance(manifest, dict) else None
    # A manifest lists the hashes of all other files, and contains its own because nothing else records it.
    if seal is None or seal != _hash(manifest):
        raise ArtifactError(
            f"{folder / MANIFEST} is damaged: its content does not match the SHA-256 that it contains. "
            f"{remedy(folder, stage)}"
        )
    result: dict[str, Any] = manifest
    try:
        checked = Manifest.model_validate(result)
        if counts := counts_of(checked.stage):
            counts.validate_python(result["counts"])
        if settings := settings_of(checked.stage):
            settings.validate_python(result["config"])
    except ValidationError as error:
        raise invalid_file(folder / MANIFEST, error) from error
    # If someone edits the settings and the seal but not this, old files would pass for those of other settings.
    if checked.fingerprint != sha256_of([checked.stage, checked.version, checked.changed, checked.inputs]):
        raise ArtifactError(
            f"{folder / MANIFEST} is damaged: its fingerprint does not match its settings and inputs. "
            f"{remedy(folder, stage)}"
        )
    return result


def remedy(folder: Path, stage: str) -> str:
    """What to do when something in the artifact `folder` of `stage` is damaged or missing."""
    return _REMEDIES.get(stage, _REBUILD).format(folder=folder)


def _hash(value: Any) -> str:
    try:
        return sha256_of(value)
    except UnicodeEncodeError:  # lone surrogates
        return ""


_VERSION = "the stage's version changed"


def changes(manifest: Mapping[str, Any], identity: Identity) -> list[str]:
    """Why the artifact of `manifest` does not match `identity`, one phrase per differing key; empty if it matches."""
    if manifest["fingerprint"] == identity.fingerprint:
        return []
    was, becomes = manifest["version"], identity.version
    phrases = [f"{_VERSION}: {was} -> {becomes}"] * (was != becomes)
    phrases += _changed_settings(manifest, identity)
    phrases += _changed_inputs(manifest["inputs"], identity.inputs)
    return list(dict.fromkeys(phrases))


def remedy_of(phrases: Iterable[str]) -> str:
    """What to do besides using another folder, as the beginning of a sentence, about the phrases of `changes`."""
    if any(phrase.startswith(_VERSION) for phrase in phrases):
        return "No settings restore what another version of bertwright made: continue with that version"
    return "Restore these settings"


def _changed_settings(manifest: Mapping[str, Any], identity: Identity) -> Iterator[str]:
    values = differences(manifest["config"], identity.config)
    # `config` holds all values, `changed` those that were hashed: a changed default differs only in the latter.
    for difference in differences(manifest["changed"], identity.changed):
        yield from [value for value in values if _same_key(value, difference)] or [difference]


def _same_key(difference: str, other: str) -> bool:
    """Whether two differences concern the same key, or one a key inside that of the other."""
    keys = sorted((phrase.partition(":")[0] + "." for phrase in (difference, other)), key=len)
    return keys[1].startswith(keys[0])


def _changed_inputs(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        was, becomes = old.get(name), new.get(name)
        if was != becomes:
            yield f"its input {name} {'is new' if was is None else 'is gone' if becomes is None else 'changed'}"
