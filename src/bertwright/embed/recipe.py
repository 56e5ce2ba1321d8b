"""Drafts the recipe that trains vectors on pairs: the one of `finetune embed`, with passes for few pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.corpus.pairs import FOLDER
from bertwright.finetune.draft import Draft, draft, gives_length
from bertwright.finetune.tasks import Key

_STEPS, _PASSES = 400, 10
"""Steps that a training has at least, unless it would read its pairs more often than so many times."""


def draft_embedding(model: Path, pairs: Artifact, dimensions: Sequence[int], overrides: Sequence[str]) -> Draft:
    """The draft of a training that starts from `model`; `dimensions` are sizes that are trained beside the full one.

    Raises as `finetune.draft`, and `RecipeError` if a size is not smaller than the full one.
    """
    sizes = [f"train.objective.dimensions=[{', '.join(map(str, dimensions))}]"] if dimensions else []
    drafted = draft("embed", model, pairs.path / FOLDER, [*sizes, *overrides])
    if too_large := [size for size in dimensions if size >= drafted.hidden_size]:
        raise RecipeError(
            f"--dimensions {max(too_large)}: the vectors of {model} have {drafted.hidden_size} numbers. Give fewer."
        )
    if gives_length(overrides):
        return drafted
    count, batch = int(pairs.counts["train_pairs"]), int(drafted.values["train"]["phases"][0]["batch"])
    passes = min(_PASSES, math.ceil(_STEPS * batch / count))
    if passes == 1:
        return drafted
    values = deepcopy(dict(drafted.values))
    values["train"]["phases"][0]["epochs"] = passes
    why = f"{count:,} pairs are few: {_STEPS} steps, or {_PASSES} passes over them"
    return replace(drafted, keys={**drafted.keys, "train.phases.0.epochs": Key(passes, why)}, values=values)
