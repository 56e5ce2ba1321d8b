"""Whether a run folder holds the recipe's results, determined from manifests and recipe sections alone.

A stage that is started by itself must not read artifacts made with other settings. Each finished artifact before it is
therefore compared: its version and settings with the recipe's, and its input artifacts with those in the folder. No
stage is imported and no source is opened: file contents are verified by the stage that reads them
(docs/decisions/0023).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.core.manifest import changes
from bertwright.pipeline.arguments import train_settings
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.train.settings.identity import (
    changes_of_checkpoints,
    checkpoint_identity,
    checkpoints_in,
    finished_identity,
    identity,
    other_settings,
)


@dataclass(frozen=True)
class Lineage:
    """What the artifacts of a recipe should be, in stage order."""

    identities: dict[str, Identity]
    """Expected identities of the artifacts in the folder."""
    fingerprints: dict[str, str]
    """Fingerprints of these and of artifacts made in this run; of missing artifacts, those recorded by later
    artifacts."""


def inputs_of(
    stage: str, recipe: Recipe, folder: Path, made_now: Mapping[str, str] | None = None
) -> dict[str, Artifact]:
    """The input artifacts of `stage` in `folder`, by name.

    `made_now` has the fingerprints of artifacts that this run has already made of the recipe; they are not compared
    again. Raises `ArtifactError` if an artifact is missing or was made with other settings than the recipe's; the
    message names the changed keys and the command to run.
    """
    needed = STAGES[stage].needs(recipe)
    artifacts = {name: finished_artifact(folder, name) for name in needed}
    if not needed:
        return artifacts
    last = max(needed, key=list(STAGES).index)
    for name, expected in lineage(recipe, folder, last, made_now).identities.items():
        if different := _differences(folder, name, expected):
            raise ArtifactError(
                f"{folder / name} was made with other settings ({'; '.join(different)}). Make it first: "
                f"{command_in(folder, f'run RECIPE --until {last}')}"
            )
    return artifacts


def finished_artifact(folder: Path, stage: str) -> Artifact:
    """The finished artifact of a stage in `folder`, whatever its settings; an error names the command that makes it."""
    if not _is_finished(folder, stage):
        raise ArtifactError(f"{folder / stage} is not finished. Make it first: {command_in(folder, f'{stage} RECIPE')}")
    return open_artifact(folder / stage, stage)


def command_in(folder: Path, words: str) -> str:
    """The command `words` for a run folder, as it can be typed."""
    return f"bertwright {words} --out {shlex.quote(str(folder))}"


def matching_artifacts(recipe: Recipe, folder: Path) -> dict[str, Artifact]:
    """The finished artifacts in `folder` that match the recipe, by stage; others are skipped."""
    standing = {}
    for name, expected in lineage(recipe, folder, "export").identities.items():
        identity_here = _finished_identity(expected, folder) if name == "train" else expected
        if not _differences(folder, name, identity_here):
            standing[name] = open_artifact(folder / name, name)
    return standing


def lineage(recipe: Recipe, folder: Path, last: str, made_now: Mapping[str, str] | None = None) -> Lineage:
    """What each artifact up to the stage `last` should be, except those of `made_now`.

    An identity combines the recipe's settings, the source files of the existing artifact, and the expected input
    artifacts.
    """
    expected = Lineage({}, dict(made_now or {}))
    for name in [*takewhile(last.__ne__, STAGES), last]:
        # Artifacts made by this run need no comparison; a recipe without a corpus has no such artifact.
        if name in expected.fingerprints or (name == "corpus" and recipe.corpus is None):
            continue
        if _is_finished(folder, name):
            standing = open_artifact(folder / name, name)
            expected.identities[name] = _expected_identity(
                recipe, name, standing.manifest["inputs"], expected.fingerprints
            )
            expected.fingerprints[name] = expected.identities[name].fingerprint
        elif recorded := next(_recorded_fingerprints(folder, name), None):
            expected.fingerprints[name] = recorded
    return expected


def _expected_identity(recipe: Recipe, name: str, was: Mapping[str, str], known: Mapping[str, str]) -> Identity:
    """The expected identity of a stage's artifact whose actual inputs are `was`."""
    stage = STAGES[name]
    # Files are not opened here, so their fingerprints are taken from the manifest (docs/decisions/0023).
    files = {input_name: fingerprint for input_name, fingerprint in was.items() if input_name not in STAGES}
    artifacts = {input_name: known.get(input_name, was.get(input_name)) for input_name in stage.needs(recipe)}
    inputs = {input_name: fingerprint for input_name, fingerprint in artifacts.items() if fingerprint is not None}
    return Identity(name, stage.version, stage.sections(recipe, was), {**inputs, **files})


def _recorded_fingerprints(folder: Path, name: str) -> Iterator[str]:
    """Fingerprints of a missing artifact, as recorded by artifacts that were made from it."""
    for path in [*(folder / stage for stage in STAGES), *checkpoints_in(folder / "train")]:
        if (path / MANIFEST).is_file():
            with suppress(ArtifactError):  # the stage that needs this artifact reports what is wrong with it
                if fingerprint := open_artifact(path).manifest["inputs"].get(name):
                    yield str(fingerprint)


def training_identity(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    """What determines the result of training; `inputs` has the fingerprints of "examples" and "vocab".

    Reads the manifests of the recipe's `train.init_from` and of the data of its phases. Raises `ArtifactError` if one
    of them is not a finished artifact.
    """
    needed = {name: inputs[name] for name in STAGES["train"].inputs}
    return identity(train_settings(recipe), recipe.next_sentence, needed, folder / "train")


def refuse_other_training(recipe: Recipe, folder: Path) -> None:
    """Raise `ArtifactError` if training of the weights in `folder` must not continue with the recipe's settings.

    The message names the changed keys, including those of the stages before training.
    """
    before = lineage(recipe, folder, "examples")
    if not before.fingerprints.keys() >= set(STAGES["train"].inputs):
        return  # neither weights nor their inputs exist
    run = training_identity(recipe, before.fingerprints, folder)
    if checkpoints_in(folder / "train"):
        # A vocabulary knows the hash of its entries only after it is built, so the recorded one is used.
        if words := next(_recorded_fingerprints(folder, "vocabulary"), None):
            run = replace(run, inputs={**run.inputs, "vocabulary": words})
        trained, expected = "checkpoints", checkpoint_identity(train_settings(recipe), recipe.next_sentence, run)
        changed = changes_of_checkpoints(folder / "train", expected)
    else:
        trained = "a model"
        changed = (
            _differences(folder, "train", _finished_identity(run, folder)) if _is_finished(folder, "train") else []
        )
    if changed:
        stages = {name: _differences(folder, name, expected) for name, expected in before.identities.items()}
        earlier = {name: phrases for name, phrases in stages.items() if phrases}
        raise other_settings(folder / "train", trained, changed, earlier)


def _finished_identity(run: Identity, folder: Path) -> Identity:
    """The identity `run`, completed with what the finished training in `folder` was sealed with."""
    standing = open_artifact(folder / "train", "train")
    # Another version may have other counts, so they are not read; the version already makes the identities differ.
    if standing.manifest["version"] != run.version:
        return run
    return finished_identity(run, standing.counts["extensions"], standing.counts["weights"])


def _differences(folder: Path, name: str, expected: Identity) -> list[str]:
    """How the finished artifact in `folder` differs from the expected one, one phrase per key."""
    return changes(open_artifact(folder / name, name).manifest, expected)


def _is_finished(folder: Path, name: str) -> bool:
    return (folder / name / MANIFEST).is_file()
