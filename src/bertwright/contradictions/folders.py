"""Contradictions between a recipe and the folders that training starts from or reads; `Recipe.check` runs these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertwright.contradictions.sections import Mistake
from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.examples.config import PAIRS
from bertwright.train.config import TrainConfig


def wrong_folders(train: TrainConfig, plan: str) -> Iterator[Mistake]:
    """Check that training starts from and reads finished folders of the right stage and task (`examples.plan`)."""
    deeper = bool(train.init_layers)  # `wrong_init_layers` checks these
    if train.init_from is not None and not deeper and (wrong := wrong_folder(train.init_from, "train", "checkpoint")):
        yield "train.init_from", wrong
    for i, phase in enumerate(train.phases):
        key = f"train.phases.{i}.data"
        if phase.data is None:
            continue
        if not phase.data.exists():
            yield key, f"{phase.data} does not exist; give an examples folder, or files of examples"
        elif (phase.data / "recipe.toml").is_file():
            examples = phase.data / "examples"
            finished = "" if (examples / MANIFEST).is_file() else ", once it is finished"
            yield key, f"{phase.data} is a run folder; give its {examples}{finished}"
        elif not (phase.data / MANIFEST).is_file():
            if phase.document_range != (0.0, 1.0):
                text = (
                    f"{list(phase.document_range)} is a share of documents, but {phase.data} does not contain documents"
                )
                yield f"train.phases.{i}.document_range", f"{text}; leave it out"
        elif wrong := wrong_folder(phase.data, "examples"):
            yield key, wrong
        elif phase.quarantine:
            text = (
                f"{phase.data} is an examples folder, and its files are already checked by their hashes; leave it out"
            )
            yield f"train.phases.{i}.quarantine", text
        # Only pairs have labels: the network has a next-sentence head for all phases or for none.
        elif (other := _plan_of(phase.data)) != plan and {other, plan} & set(PAIRS):
            yield key, f"{phase.data} was made with examples.plan={other}, but this recipe has {plan}; use the same"


def wrong_folder(path: Path, *stages: str) -> str:
    """Return why `path` is not the finished folder of one of `stages`; "" if it is."""
    if not (path / MANIFEST).exists() and (path / "config.json").is_file():
        wanted = " or ".join(stages)
        read = "read only with train.init_layers" if "train" in stages else "not read"
        return (
            f"{path} is a Hugging Face folder, and its weights are {read}. Give a folder of {wanted} of a run; "
            f"model.config={path / 'config.json'} uses only its architecture"
        )
    try:
        stage = open_artifact(path).manifest["stage"]
    except ArtifactError as error:
        return str(error)
    return "" if stage in stages else f"{path} was made by the stage {stage!r}; give a folder of {' or '.join(stages)}"


def _plan_of(examples: Path) -> str:
    return str(open_artifact(examples).manifest["config"]["examples"]["plan"])
