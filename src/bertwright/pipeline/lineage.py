"""Whether a run folder holds what the recipe makes, told from manifests and the sections of the recipe alone.

A stage started by itself must not be given what other settings made. So each finished artifact before it is compared:
its version and its settings with the recipe's, and those of its inputs that are artifacts with what stands in the
folder. No stage is imported and no source is opened: what files hold is the business of the stage that reads them
(docs/decisions/0023).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from bertwright.core.artifact import MANIFEST, Artifact, changes, open_artifact
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError
from bertwright.pipeline.arguments import train_settings
from bertwright.pipeline.stage import STAGES
from bertwright.recipe import Recipe
from bertwright.train.identity import (
    CHECKPOINTS,
    checkpoint_identity,
    extended,
    identity,
    refuse_other_settings,
)


@dataclass(frozen=True)
class Lineage:
    """What the artifacts of a recipe should be, in travel order."""

    identities: dict[str, Identity]
    """Of those that stand in the folder."""
    fingerprints: dict[str, str]
    """Of these, of what this run has made, and of those that are gone what others say that they were made of."""


def inputs_of(
    stage: str, recipe: Recipe, folder: Path, made_now: Mapping[str, str] | None = None
) -> dict[str, Artifact]:
    """The artifacts in `folder` that `stage` is made of, by name.

    `made_now` has the fingerprints of those that this run has made of the same recipe: they are not compared again.
    Raises `ArtifactError` when an artifact is missing, or was made with other settings than the recipe's: it names the
    changed keys and the command to run.
    """
    needed = STAGES[stage].needs(recipe)
    artifacts = {name: finished_artifact(folder, name) for name in needed}
    if not needed:
        return artifacts
    last = max(needed, key=list(STAGES).index)
    for name, expected in lineage(recipe, folder, last, made_now).identities.items():
        if different := _differences(folder, name, expected):
            raise ArtifactError(
                f"{folder / name} was made with other settings ({different}). Make it first: "
                f"bertwright run RECIPE --until {last} --out {folder}"
            )
    return artifacts


def finished_artifact(folder: Path, stage: str) -> Artifact:
    """The finished artifact of a stage in `folder`, whatever its settings; an error names the verb that makes it."""
    if not _is_finished(folder, stage):
        raise ArtifactError(
            f"{folder / stage} is not finished. Make it first: bertwright {stage} RECIPE --out {folder}"
        )
    return open_artifact(folder / stage, stage)


def standing_artifacts(recipe: Recipe, folder: Path) -> dict[str, Artifact]:
    """The finished artifacts in `folder` that the recipe would make again, by stage; others are left out."""
    standing = {}
    for name, expected in lineage(recipe, folder, "export").identities.items():
        identity_here = _sealed(expected, folder) if name == "train" else expected
        if not _differences(folder, name, identity_here):
            standing[name] = open_artifact(folder / name, name)
    return standing


def lineage(recipe: Recipe, folder: Path, last: str, made_now: Mapping[str, str] | None = None) -> Lineage:
    """What each artifact up to the stage `last` should be, without those of `made_now`.

    An identity has the recipe's settings, the files that the standing artifact was made of, and the artifacts before it
    as they should be.
    """
    expected = Lineage({}, dict(made_now or {}))
    for name in [*takewhile(last.__ne__, STAGES), last]:
        # What this run has made of the recipe needs no comparison; a recipe without a corpus has no such input.
        if name in expected.fingerprints or (name == "corpus" and recipe.corpus is None):
            continue
        if _is_finished(folder, name):
            standing = open_artifact(folder / name, name)
            expected.identities[name] = _expected(recipe, name, standing.manifest["inputs"], expected.fingerprints)
            expected.fingerprints[name] = expected.identities[name].fingerprint
        elif recorded := next(_recorded(folder, name), None):
            expected.fingerprints[name] = recorded
    return expected


def _expected(recipe: Recipe, name: str, was: Mapping[str, str], known: Mapping[str, str]) -> Identity:
    """What the artifact of a stage should be that was made of the inputs `was`."""
    stage = STAGES[name]
    # Files are not opened here, so they count as the manifest has them (docs/decisions/0023).
    files = {input_name: fingerprint for input_name, fingerprint in was.items() if input_name not in STAGES}
    artifacts = {input_name: known.get(input_name, was.get(input_name)) for input_name in stage.needs(recipe)}
    inputs = {input_name: fingerprint for input_name, fingerprint in artifacts.items() if fingerprint is not None}
    return Identity(name, stage.version, stage.sections(recipe, was), {**inputs, **files})


def _recorded(folder: Path, name: str) -> Iterator[str]:
    """What those made of an artifact that is gone say of it."""
    checkpoints = sorted((folder / "train" / CHECKPOINTS).glob("step-*"), reverse=True)
    for path in [*(folder / stage for stage in STAGES), *checkpoints]:
        if (path / MANIFEST).is_file():
            with suppress(ArtifactError):  # whoever needs that one says what is wrong with it
                if fingerprint := open_artifact(path).manifest["inputs"].get(name):
                    yield str(fingerprint)


def training_identity(recipe: Recipe, inputs: Mapping[str, str], folder: Path) -> Identity:
    """What training is a function of; `inputs` has the fingerprints of "examples" and "vocab".

    Reads the manifests of what the recipe names as `train.init_from` and as data of phases. Raises `ArtifactError`
    where one is no finished artifact.
    """
    needed = {name: inputs[name] for name in STAGES["train"].inputs}
    return identity(train_settings(recipe), recipe.next_sentence, needed, folder / "train")


def refuse_other_training(recipe: Recipe, folder: Path) -> None:
    """Raise `ArtifactError` when the trained weights in `folder` may not be continued with the settings of the recipe.

    The message names the changed keys, also those of the stages before training.
    """
    before = lineage(recipe, folder, "examples")
    if not before.fingerprints.keys() >= set(STAGES["train"].inputs):
        return  # neither weights nor what they were made of
    run = training_identity(recipe, before.fingerprints, folder)
    if not any((folder / "train" / CHECKPOINTS).glob("step-*")):
        if _is_finished(folder, "train") and (different := _differences(folder, "train", _sealed(run, folder))):
            raise ArtifactError(
                f"{folder / 'train'} holds a model of other settings, and trained weights are not thrown away: "
                f"{different}. Set these back, or train elsewhere (--out DIR), or move {folder / 'train'} away."
            )
        return
    # A vocabulary knows the hash of its entries only when it is built. It follows from the fingerprint.
    if words := next(_recorded(folder, "vocabulary"), None):
        run = replace(run, inputs={**run.inputs, "vocabulary": words})
    try:
        refuse_other_settings(folder / "train", checkpoint_identity(train_settings(recipe), recipe.next_sentence, run))
    except ArtifactError as error:
        changed = [
            f"{name} ({d})"
            for name, expected in before.identities.items()
            if (d := _differences(folder, name, expected))
        ]
        raise ArtifactError(f"{error} Changed before it: {', '.join(changed)}." if changed else str(error)) from None


def _sealed(run: Identity, folder: Path) -> Identity:
    """The identity `run` as the finished training in `folder` would be sealed with it."""
    standing = open_artifact(folder / "train", "train")
    # Another version may count other things, so what it counted is not looked at; the version alone differs.
    if standing.manifest["version"] != run.version:
        return run
    return extended(run, standing.counts["extensions"], standing.counts["weights"])


def _differences(folder: Path, name: str, expected: Identity) -> str:
    """How the finished artifact in `folder` differs from the expected one, one phrase per key; "" if it does not."""
    standing = open_artifact(folder / name, name)
    return "" if standing.fingerprint == expected.fingerprint else "; ".join(changes(standing, expected))


def _is_finished(folder: Path, name: str) -> bool:
    return (folder / name / MANIFEST).is_file()
