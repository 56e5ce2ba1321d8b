"""Which engines and micro-batch sizes an autotuning tries, and what a candidate changes in the recipe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.core.resources import memory_size
from bertwright.estimate.machine_facts import training_gpus
from bertwright.train.engine.config import EngineConfig
from bertwright.train.memory.rank_memory import computing_of, fitting_sequences
from bertwright.trial.attempt import Tried
from bertwright.trial.search import Candidate, Sizes, halves, sizes


def engines_to_try(tried: Tried, requested: Sequence[str] | None) -> list[str]:
    """The requested engines, or all that suit this number of ranks; `RecipeError` for an unsuitable one.

    One rank has nothing to share, so its engine is the recipe's: another one would only drop settings of that section.
    """
    known: list[str] = [tried.recipe.train.engine.kind] if tried.ranks == 1 else ["ddp", "zero", "fsdp"]
    if tried.ranks > 1 and find_spec("deepspeed") and tried.recipe.optim.kind == "adamw":
        known.append("deepspeed")
    if unknown := [name for name in requested or () if name not in known]:
        raise RecipeError(
            f"--engine {unknown[0]}: with {tried.ranks} ranks and this recipe there are {', '.join(known)}."
        )
    return list(requested or known)


def first_size(tried: Tried) -> int:
    """The smallest micro-batch to try: a sixteenth of what is forecast to fit.

    Raises `RecipeError` if the recipe has no such phase, or if another setting determines the size of a forward pass.
    """
    phases = tried.recipe.train.phases
    if tried.phase >= len(phases):
        raise RecipeError(f"--phase {tried.phase}: the recipe has phases 0 to {len(phases) - 1}.")
    config = phases[tried.phase]
    if config.packing or config.micro_tokens:
        name = "packing" if config.packing else "micro_tokens"
        raise RecipeError(
            f"train.phases.{tried.phase}.{name} decides how many sequences a forward pass has, and autotune varies "
            f"micro_batch. Remove {name}: train.phases.{tried.phase}.{name}="
        )
    gpus = training_gpus(tried.recipe)
    computing = computing_of(tried.recipe.train, tried.recipe.optim, tried.ranks, gpu=bool(gpus))
    # Each rank has one GPU; the memory of AMD GPUs is not known.
    memory = min(gpus, default=0) or memory_size() / tried.ranks
    return max(1, fitting_sequences(tried.recipe.network(), config, computing, memory) // 16)


def sizes_to_try(tried: Tried, requested: Sequence[int] | None) -> Sizes:
    """The requested sizes, or doublings of the first size and its halves; `RecipeError` for one too large."""
    first = first_size(tried)
    if not requested:
        found = sizes(tried.share, first)
        return Sizes(found, halves(found[0]))
    if max(requested) > tried.share:
        raise RecipeError(
            f"--micro-batch {max(requested)}: a rank has {tried.share} sequences per step. Give a smaller micro-batch."
        )
    return Sizes(sorted(requested))


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
