"""Loads models to serve: runs, their checkpoints, and folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import RecipeError
from bertwright.model.device import resolve_device
from bertwright.model.saved import network_from
from bertwright.model.text_encoder import Encoder, load_tokenizer
from bertwright.pipeline.lineage import finished_artifact
from bertwright.pipeline.run_folder import recorded_recipe
from bertwright.predict.answerers import run_of
from bertwright.serve.onnx_network import open_onnx, written_runtime
from bertwright.serve.served import About, Served
from bertwright.train.checkpoints.tensor_files import read_all
from bertwright.train.settings.identity import checkpoints_in

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class How:
    """How models are computed."""

    runtime: str = ""
    """ "torch", or a runtime of ONNX; "": ONNX for a folder that has no weights, else torch."""
    precision: Precision = "float32"
    """Of torch."""


BY_TORCH = How()


def load_models(paths: Sequence[Path], steps: Sequence[int] = (), how: How = BY_TORCH) -> list[Served]:
    """The models of these folders, each with another name, and the checkpoints of the only one after these `steps`.

    A run whose training is not finished is served by its newest checkpoint. Raises `RecipeError` if there is no such
    checkpoint.
    """
    if how.runtime not in ("", "torch") and (steps or how.precision != "float32"):
        option = "--checkpoint" if steps else "--precision"
        raise RecipeError(f"{option} is for torch, not for --runtime {how.runtime}. Leave one of them out.")
    if steps and (len(paths) > 1 or not _is_run(paths[0])):
        raise RecipeError("--checkpoint takes the checkpoints of one run. Give its folder, and no other model.")
    found: list[Served] = []
    for path in paths:
        for model in _models_of(path, steps, how):
            model.name = _free(model.name, {each.name for each in found})
            found.append(model)
    return found


def _is_run(path: Path) -> bool:
    return (path / "recipe.toml").is_file()


def _free(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def _models_of(path: Path, steps: Sequence[int], how: How) -> Iterator[Served]:
    name, about = path.resolve().name, about_of(path)
    finished = not _is_run(path) or (path / "train" / MANIFEST).is_file()
    wanted = steps or (() if finished else _newest(path))
    runtime = how.runtime or written_runtime(path)
    if runtime not in ("", "torch"):
        if not finished:
            raise RecipeError(f"{path} has checkpoints alone, which are for torch. Leave out --runtime {runtime}.")
        if how.precision != "float32":
            raise RecipeError(f"--precision is for torch, and {path} has an ONNX file alone. Leave it out.")
        encoder, lacks = open_onnx(path, runtime)
        yield Served(name, path, encoder, about, lacks)
    elif finished:
        yield Served(name, path, _cast(Encoder(path, resolve_device("auto")), how), about)
    for step in wanted:
        yield Served(f"{name}@{step}", path, _cast(_of_checkpoint(path, step), how), about)


def _cast(encoder: Encoder, how: How) -> Encoder:
    encoder.model.to(getattr(torch, how.precision))
    return encoder


def _steps(run: Path) -> list[int]:
    """The steps of the checkpoints of a run, the newest first."""
    return [int(each.name.removeprefix("step-")) for each in checkpoints_in(run / "train")]


def _newest(run: Path) -> list[int]:
    if not (steps := _steps(run)):
        raise RecipeError(f"{run} has no model and no checkpoint yet. Train it: bertwright run {run}.")
    return steps[:1]


def _of_checkpoint(run: Path, step: int) -> Encoder:
    steps = _steps(run)
    if step not in steps:
        listed = ", ".join(map(str, sorted(steps))) or "none"
        raise RecipeError(f"{run} has no checkpoint of step {step}; it has: {listed} (train.keep_checkpoints).")
    checkpoint = open_artifact(checkpoints_in(run / "train")[steps.index(step)], "checkpoint")
    recipe, _ = recorded_recipe(run)
    entries = int(finished_artifact(run, "vocab").counts["entries"])
    network = recipe.task.network(recipe.model, entries, recipe.examples.pairs)
    model = network_from(network, read_all(checkpoint, "model"), source=str(checkpoint.path))
    return Encoder.of(model, load_tokenizer(run), resolve_device("auto"))


def about_of(path: Path) -> About:
    """What the run of a model says about it; little without one."""
    created = int(path.stat().st_mtime) if path.exists() else 0
    run = run_of(path)
    if run is None:
        return About(created=created)
    recipe, _ = recorded_recipe(run)
    language = recipe.corpus.language if recipe.corpus else ""
    return About(recipe.report.title or run.resolve().name, language, recipe.evaluate.cloze, created)
