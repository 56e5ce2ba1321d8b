"""What a recipe and the data of a workspace have to agree in."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from bertwright.core.errors import RecipeError
from bertwright.core.toml import apply_overrides, validate
from bertwright.launch.azureml.assets import Input
from bertwright.launch.azureml.steps import texts
from bertwright.launch.job import Job
from bertwright.recipe import Recipe

_BUILT_IN = ("sample", "sample-small")


def check_inputs(job: Job, inputs: Mapping[str, Input]) -> None:
    """`RecipeError` for an input whose key no recipe has, and for what only a command may hold."""
    for text in texts(job.values):
        if "${{" in text:
            raise RecipeError(
                f"{text}: Azure puts values into commands, not into a recipe. Give data as [inputs.NAME] of the "
                "place, with key and path."
            )
    values = copy.deepcopy(dict(job.values))
    apply_overrides(values, [f'{data.key}="/input"' for data in inputs.values()])
    validate(Recipe, values, "[inputs]", {})


def unseen_sources(job: Job, inputs: Mapping[str, Input]) -> str:
    """What to say where the corpus is made of files that no job sees; "" where it is not."""
    if any(data.key.startswith("corpus.source") for data in inputs.values()):
        return ""
    sources = job.values.get("corpus", {}).get("source", ())
    sources = sources if isinstance(sources, list | tuple) else [sources]
    paths = [source.get("path", "") if isinstance(source, Mapping) else source for source in sources]
    unseen = [path for path in paths if "://" not in path and path not in _BUILT_IN]
    if not unseen:
        return ""
    return (
        f"The jobs do not see the file {unseen[0]}: upload it, and add a section [inputs.NAME] to the place with "
        'key = "corpus.source" and its path in the workspace.'
    )


def writes_events(job: Job) -> bool:
    """Whether TensorBoard's events are written to where the service of that name looks for them."""
    observers = job.values.get("train", {}).get("observers", [])
    return any(each in ("tensorboard", {"kind": "tensorboard"}) for each in observers)
