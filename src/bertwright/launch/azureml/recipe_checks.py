"""Checks that a recipe and the data of a workspace agree."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from bertwright.core.errors import RecipeError
from bertwright.core.toml import apply_overrides, validate
from bertwright.launch.azureml.assets import Input
from bertwright.launch.azureml.steps import AFTER, RUN
from bertwright.launch.job import Job, listed
from bertwright.launch.secrets import texts
from bertwright.recipe import Recipe


def check_inputs(job: Job, inputs: Mapping[str, Input]) -> None:
    """Raise `RecipeError` for an input whose key no recipe has or whose name is taken, and for syntax that is valid
    only in a command."""
    if AFTER in inputs:
        raise RecipeError(f"[inputs.{AFTER}]: by an input of this name, steps wait for each other. Give another name.")
    for _, text in texts(job.values):
        if "${{" in text:
            raise RecipeError(
                f"{text}: Azure inserts values into commands, not into a recipe. Give data as [inputs.NAME] of the "
                "place, with key and path."
            )
    values = copy.deepcopy(dict(job.values))
    apply_overrides(values, [f'{data.key}="/input"' for data in inputs.values()])
    validate(Recipe, values, "[inputs]", {})


def unseen_files(job: Job, inputs: Mapping[str, Input]) -> str:
    """Return a note naming the recipe's files that no job sees; "" if there are none."""
    given = tuple(data.key for data in inputs.values())
    unseen = {key: path for key, path in job.files.items() if not any(_same(key, each) for each in given)}
    if not unseen:
        return ""
    return (
        f"The jobs do not see {listed(unseen)}: upload what is missing, and add a section [inputs.NAME] to the place "
        f'for each, with key = "{next(iter(unseen))}" and its path in the workspace.'
    )


def _same(key: str, given: str) -> bool:
    """Whether an input replaces this key: an input may set all of a source, or only its path."""
    return f"{key}.".startswith(f"{given}.") or f"{given}.".startswith(f"{key}.")


def events_folder(job: Job) -> str:
    """Return the folder of TensorBoard's events as the job that trains sees it; "" if the recipe writes none."""
    observers = job.values.get("train", {}).get("observers", [])
    sections = [{"kind": each} if isinstance(each, str) else each for each in observers]
    own = f"{RUN}/train/observers/tensorboard"
    return next((str(each.get("folder", own)) for each in sections if each["kind"] == "tensorboard"), "")
