"""Checks that a recipe and the data of a workspace agree."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

from bertwright.core.dotted import overlap, texts
from bertwright.core.errors import RecipeError
from bertwright.core.overrides import set_key
from bertwright.core.toml import validate
from bertwright.launch.azureml.assets import Input
from bertwright.launch.azureml.steps import AFTER, RUN
from bertwright.launch.job import Job, listed
from bertwright.recipe import Recipe


def with_inputs(job: Job, inputs: Mapping[str, Input]) -> Job:
    """Return the job with the paths of the inputs in the workspace in place of those of this machine.

    In the job, the command sets these keys to where the data is mounted. Raises `RecipeError` for an input whose key no
    recipe has or whose name is taken, and for syntax that is valid only in a command.
    """
    if AFTER in inputs:
        raise RecipeError(f"[inputs.{AFTER}]: by an input of this name, steps wait for each other. Give another name.")
    for _, text in texts(job.values):
        if "${{" in text:
            raise RecipeError(
                f"{text}: Azure inserts values into commands, not into a recipe. Give data as [inputs.NAME] of the "
                "place, with key and path."
            )
    values = copy.deepcopy(dict(job.values))
    for data in inputs.values():
        set_key(values, data.key, "/".join(filter(None, (data.path, data.below))), Recipe)
    # The result is not needed, only the message about a key that no recipe has.
    validate(Recipe, values, "[inputs]", {})
    return replace(job, written=replace(job.written, values=values))


def unseen_files(job: Job, inputs: Mapping[str, Input]) -> dict[str, str]:
    """Return the recipe's files that no job sees, as in `Job.files`."""
    given = tuple(data.key for data in inputs.values())
    return {key: path for key, path in job.files.items() if not any(overlap(key, each) for each in given)}


def unseen(files: Mapping[str, str]) -> str:
    """Return what to do about files that no job sees; "" if there are none."""
    if not files:
        return ""
    return (
        f"The jobs do not see {listed(files)}: upload what is missing, and add a section [inputs.NAME] to the place "
        f'for each, with key = "{next(iter(files))}" and its path in the workspace.'
    )


def events_folder(job: Job) -> str:
    """Return the folder of TensorBoard's events as the job that trains sees it; "" if the recipe writes none."""
    observers = job.values.get("train", {}).get("observers", [])
    sections = [{"kind": each} if isinstance(each, str) else each for each in observers]
    own = f"{RUN}/train/observers/tensorboard"
    return next((str(each.get("folder", own)) for each in sections if each["kind"] == "tensorboard"), "")
