"""The settings that a run was made with: those sealed with its artifacts, whatever recipe.toml says by now.

A later stage with other settings, or an editor, may have rewritten recipe.toml. What shows or writes examples again
must not believe it.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import GIVEN, differences
from bertwright.core.errors import ArtifactError
from bertwright.core.renamed import renamed
from bertwright.recipe import Recipe
from bertwright.train.identity import CHECKPOINTS


def sealed_recipe(folder: Path) -> tuple[Recipe, list[str]]:
    """The recipe of the run in `folder` with the settings of all that is made of it, and in which keys recipe.toml
    says otherwise, each as `key: what was made -> what recipe.toml says`.

    Of what is not made yet, and of what changes no result, recipe.toml tells. `ArtifactError` where it cannot belong
    to the artifacts.
    """
    # Folders that training started from may be gone since; nothing is started from them here.
    recipe = Recipe.load(folder / "recipe.toml", given=False)
    written = recipe.model_dump(mode="json")
    artifacts = _artifacts(folder)
    values = {
        **written,
        **{key: _overlaid(written[key], sealed) for key, sealed in _settings(artifacts, written).items()},
    }
    _restore_own_data(folder, values, artifacts)
    try:
        return Recipe.model_validate(values), differences(values, written)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        wrong = f"it is called {new} now" if (new := renamed(key)) else fault["msg"]
        raise ArtifactError(
            f"the settings sealed in {folder} do not fit this version or {folder / 'recipe.toml'}: "
            f"{key}: {wrong}. Restore recipe.toml, or make the run anew."
        ) from error


def is_trained(folder: Path) -> bool:
    """Whether training has sealed its settings: it is finished, or has a checkpoint."""
    return "train" in _artifacts(folder)


def _artifacts(folder: Path) -> dict[str, Artifact]:
    """The artifacts of the stages whose settings matter; of unfinished training its newest checkpoint."""
    stages = ("corpus", "vocab", "examples", "train")
    artifacts = {name: open_artifact(folder / name, name) for name in stages if (folder / name / MANIFEST).is_file()}
    if "train" not in artifacts:
        # One alone: all checkpoints of a folder have the same settings, or training would have refused. Not one that is
        # damaged, from which training would not go on either.
        for path in sorted((folder / "train" / CHECKPOINTS).glob("step-*"), reverse=True):
            with suppress(ArtifactError):
                artifacts["train"] = open_artifact(path, "checkpoint")
                break
    return artifacts


def _settings(artifacts: dict[str, Artifact], written: dict[str, Any]) -> dict[str, Any]:
    """The sealed settings by section of the recipe."""
    settings: dict[str, Any] = {}
    for name, artifact in artifacts.items():
        config = artifact.manifest["config"]
        sections = ("train", "model", "optim") if name == "train" else (name,)
        settings |= {section: dict(config[section]) for section in sections if section in config}
    if written["corpus"] is None:
        settings.pop("corpus", None)  # left by an earlier run in this folder
    if "corpus" in settings and len(settings["corpus"]["source"]) != len(written["corpus"]["source"]):
        del settings["corpus"]["source"]  # where the texts lie is not sealed
    return settings


def _restore_own_data(folder: Path, values: dict[str, Any], artifacts: dict[str, Artifact]) -> None:
    """Which phases have data of their own is sealed, where it lies is not."""
    if "train" not in artifacts:
        return
    inputs = {key for artifact in artifacts.values() for key in artifact.manifest["inputs"]}
    for index, phase in enumerate(values["train"]["phases"]):
        own = not inputs.isdisjoint((f"train.phases.{index}.data", f"data {index}"))
        # recipe.toml may name data that this run never saw.
        if not own:
            phase |= {"data": None, "quarantine": False}
        elif phase.get("data") in (None, GIVEN):
            raise ArtifactError(
                f"phase {index} of the run in {folder} was trained on data of its own, of which "
                f"{folder / 'recipe.toml'} does not know any more. Write train.phases.{index}.data there again."
            )


def _overlaid(old: Any, new: Any) -> Any:
    """`old` with everything that `new` says; elements of lists of tables one by one."""
    if isinstance(old, dict) and isinstance(new, dict) and new.get("kind") in (None, old.get("kind")):
        return {**old, **{key: _overlaid(old.get(key), value) for key, value in new.items()}}
    # The sealed list may be longer: phases that recipe.toml has lost were trained all the same.
    if isinstance(old, list) and isinstance(new, list):
        return [_overlaid(a, b) for a, b in zip_longest(old[: len(new)], new)]
    return old if new == GIVEN and old is not None else new
