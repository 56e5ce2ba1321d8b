"""Everything the page shows, read from the run folder: manifests, JSON, JSONL and the recipe's text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_bytes


@dataclass(frozen=True)
class Facts:
    """One finished run."""

    title: str
    """Heading of the page."""
    stages: Mapping[str, Artifact]
    """The artifact of each stage, in travel order."""
    metrics: tuple[Mapping[str, Any], ...]
    """The rows of metrics.jsonl, in order."""
    predictions: tuple[Mapping[str, Any], ...]
    """Sentences with a masked word and the model's guesses."""
    network: Mapping[str, Any]
    """The model's config.json."""
    recipe: str
    """The resolved recipe, TOML."""

    def counts(self, stage: str) -> Mapping[str, Any]:
        """What a stage counted."""
        return self.stages[stage].counts


def read_facts(folder: Path, stages: Mapping[str, Artifact], title: str) -> Facts:
    """The facts of the run in `folder`, whose artifacts are `stages`."""
    train, evaluate = stages["train"], stages["evaluate"]
    return Facts(
        title=title or folder.resolve().name,
        stages=stages,
        metrics=tuple(json.loads(line) for line in train.file("metrics.jsonl").read_bytes().splitlines()),
        predictions=tuple(json.loads(evaluate.file("predictions.json").read_bytes())),
        network=json.loads(train.file("model/config.json").read_bytes()),
        recipe=_text(folder / "recipe.toml"),
    )


def _text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise ArtifactError(f"cannot read {path}: {error}. The command that makes the stages writes it.") from error
