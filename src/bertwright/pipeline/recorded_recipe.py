"""The settings that a run was made with: those sealed in its artifacts, even if recipe.toml has changed since.

A later stage with other settings, or an editor, may have rewritten recipe.toml. Code that shows or regenerates examples
must therefore not rely on it.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import GIVEN, differences
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.recipe import Recipe
from bertwright.train.settings.identity import checkpoints_in


def sealed_recipe(folder: Path) -> tuple[Recipe, list[str]]:
    """The recipe of the run in `folder` with the settings of all its artifacts, and the keys in which recipe.toml
    differs, each as `key: sealed value -> value in recipe.toml`.

    Settings of stages not yet made, and settings that do not affect results, come from recipe.toml. Raises
    `ArtifactError` if recipe.toml cannot belong to the artifacts.
    """
    if not (folder / "recipe.toml").is_file():
        raise RecipeError(f"{folder} is no run folder: it has no recipe.toml. Give the folder of a run.")
    # What training started from and was made of may no longer exist; nothing is started or made here.
    recipe = Recipe.load(folder / "recipe.toml", given=False, unread=("vocab.file", "model.config"))
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
        raise ArtifactError(
            f"the settings recorded in {folder} do not match this version or {folder / 'recipe.toml'}: {key}: "
            f"{fault['msg']}. Restore recipe.toml, or make a new run."
        ) from error


def is_trained(folder: Path) -> bool:
    """Whether training has sealed its settings: it is finished or has a checkpoint."""
    return "train" in _artifacts(folder)


def _artifacts(folder: Path) -> dict[str, Artifact]:
    """The artifacts of the stages whose settings matter; for an unfinished training, its newest checkpoint."""
    stages = ("corpus", "vocab", "examples", "train")
    artifacts = {name: open_artifact(folder / name, name) for name in stages if (folder / name / MANIFEST).is_file()}
    if "train" not in artifacts:
        # One is enough: training rejects a folder whose checkpoints have other settings. Damaged checkpoints are
        # skipped, as training does when it resumes.
        for path in checkpoints_in(folder / "train"):
            with suppress(ArtifactError):
                artifacts["train"] = open_artifact(path, "checkpoint")
                break
    return artifacts


def _settings(artifacts: dict[str, Artifact], written: dict[str, Any]) -> dict[str, Any]:
    """The sealed settings by recipe section."""
    settings: dict[str, Any] = {}
    for name, artifact in artifacts.items():
        config = artifact.manifest["config"]
        sections = ("train", "model", "optim") if name == "train" else (name,)
        settings |= {section: dict(config[section]) for section in sections if section in config}
    if written["corpus"] is None:
        settings.pop("corpus", None)  # left by an earlier run in this folder
    if "corpus" in settings and len(settings["corpus"]["source"]) != len(written["corpus"]["source"]):
        del settings["corpus"]["source"]  # the location of texts is not sealed
    return settings


def _restore_own_data(folder: Path, values: dict[str, Any], artifacts: dict[str, Artifact]) -> None:
    """Restore which phases have their own data; that is sealed, but the location of the data is not."""
    if "train" not in artifacts:
        return
    inputs = {key for artifact in artifacts.values() for key in artifact.manifest["inputs"]}
    for index, phase in enumerate(values["train"]["phases"]):
        own = not inputs.isdisjoint((f"train.phases.{index}.data", f"data {index}"))
        # recipe.toml may name data that this run did not use.
        if not own:
            phase |= {"data": None, "quarantine": False}
        elif phase.get("data") in (None, GIVEN):
            raise ArtifactError(
                f"phase {index} of the run in {folder} was trained on its own data, but {folder / 'recipe.toml'} no "
                f"longer contains that key. Add train.phases.{index}.data there again."
            )


def _overlaid(old: Any, new: Any) -> Any:
    """`old` overwritten with all values in `new`; lists of tables are merged element by element."""
    if isinstance(old, dict) and isinstance(new, dict) and new.get("kind") in (None, old.get("kind")):
        return {**old, **{key: _overlaid(old.get(key), value) for key, value in new.items()}}
    # The sealed list may be longer: phases deleted from recipe.toml were trained all the same.
    if isinstance(old, list) and isinstance(new, list):
        return [_overlaid(a, b) for a, b in zip_longest(old[: len(new)], new)]
    return old if new == GIVEN and old is not None else new
