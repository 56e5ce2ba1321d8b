"""What a candidate of an autotuning changes in the recipe: the keys that select it, and what they replace."""

from __future__ import annotations

import json
from typing import Any

from bertwright.bench.search import Candidate
from bertwright.bench.trial import Tried
from bertwright.train.engine.config import EngineConfig


def keys_of(tried: Tried, candidate: Candidate) -> dict[str, Any]:
    """The recipe keys that select this candidate; without `train.engine` if the recipe has that engine, whose other
    settings, such as `reduction`, then stay."""
    keys: dict[str, Any] = {f"train.phases.{tried.phase}.micro_batch": candidate.micro_batch}
    if candidate.engine != tried.recipe.train.engine.kind:
        keys["train.engine"] = candidate.engine
    return keys | {"train.checkpoint_activations": candidate.checkpoint_activations}


def changes_of(tried: Tried, candidate: Candidate) -> list[str]:
    """Each key whose value the candidate changes, with both values, and with the settings of an engine that go."""
    train = tried.recipe.train
    before = {
        f"train.phases.{tried.phase}.micro_batch": json.dumps(train.phases[tried.phase].micro_batch),
        "train.engine": _words(train.engine),
        "train.checkpoint_activations": json.dumps(train.checkpoint_activations),
    }
    after = {
        key: value if key == "train.engine" else json.dumps(value) for key, value in keys_of(tried, candidate).items()
    }
    return [f"{key} from {before[key]} to {value}" for key, value in after.items() if value != before[key]]


def _words(engine: EngineConfig) -> str:
    options = engine.model_dump(exclude_defaults=True, exclude={"kind"})
    return " ".join([engine.kind, *(f"{name}={json.dumps(value)}" for name, value in options.items())])
