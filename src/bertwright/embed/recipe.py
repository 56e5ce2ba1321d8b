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
from bertwright.export.runtimes.runtime import Published
from bertwright.export.sentence_modules import MODULES
from bertwright.finetune.draft import Draft, draft, gives_length
from bertwright.finetune.tasks import Key
from bertwright.model.pretrained_config import find_pretrained

_STEPS, _PASSES, _AGAIN = 400, 10, 3
"""Steps that a training has at least, unless it would read its pairs more often than so many times; of a model that was
trained to give vectors before, which soon knows few pairs by heart, so many (docs/results.md, "Vectors of texts")."""


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
    most = _AGAIN if gives_vectors(model) else _PASSES
    passes = min(most, math.ceil(_STEPS * batch / count))
    if passes == 1:
        return drafted
    values = deepcopy(dict(drafted.values))
    values["train"]["phases"][0]["epochs"] = passes
    given = f"{most} passes over them" + (", because the model already gives vectors" if most == _AGAIN else "")
    why = f"{count:,} pairs are few: {_STEPS} steps, or {given}"
    return replace(drafted, keys={**drafted.keys, "train.phases.0.epochs": Key(passes, why)}, values=values)


def gives_vectors(model: Path) -> bool:
    """Whether a model was trained to give vectors of texts: a network without a head, beside which files say how its
    states become a vector. Models with a head may have these files, too, for whoever wants vectors of them."""
    start = find_pretrained(model)
    if not start.stock:
        return start.network.gives_vectors
    published = Published(start.folder)
    return (start.folder / MODULES).is_file() and published.head == "encoder"
