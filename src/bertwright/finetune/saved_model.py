"""Scores the exported model of a run again, as others will use it: loaded from its folder, with its own tokenizer.

RUN/saved_scores.json    the scores, and the fingerprint of the folder that has them
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_typed, write_json
from bertwright.core.log import SILENT, Log
from bertwright.core.shapes import Score, Text
from bertwright.examples.own_examples import read_splits
from bertwright.examples.own_files import find_files
from bertwright.model.classifier import Classifier
from bertwright.model.device import resolve_device
from bertwright.model.text_encoder import load_model, load_tokenizer
from bertwright.model.vectors import VectorModel
from bertwright.pipeline.run_folder import RunFolder
from bertwright.recipe import Recipe
from bertwright.tasks.members import task_of
from bertwright.tasks.task import HeldOut

SAVED = "saved_scores.json"
SAME, NEAR = 5e-5, 0.01
"""Scores that differ by less are the same as printed, and those that differ by more belong to another model; between
them are the answers that another kernel changes."""


class _Saved(TypedDict):
    export: Text
    scores: dict[Text, Score]


def rescore(recipe: Recipe, folder: Path, names: Sequence[str], log: Log) -> None:
    """Score the exported model of a recipe's run in `folder` on the held-out files, and compare its scores, of which
    `names` are printed, with those of the trained model.

    Raises `ArtifactError` if its tokenizer gives other ids, or if a score is another. A folder that was compared before
    is not compared again.
    """
    run = RunFolder(folder)
    export, file, scores = run.artifact("export"), folder / SAVED, run.scores
    if file.is_file() and read_typed(file, TypeAdapter(_Saved))["export"] == export.fingerprint:
        return
    found = _scores(recipe, run, export.path / "hf")
    # A threshold is no score: among answers that score the same, another kernel may choose another.
    compared = [name for name in names if name != "threshold"]
    before, now = ([float(cast("Any", each)[name] or 0.0) for name in compared] for each in (scores, found))
    worst, name = max((abs(a - b), name) for name, a, b in zip(compared, before, now, strict=True))
    if not worst <= NEAR:
        raise ArtifactError(
            f"{export.path / 'hf'} scores otherwise than the trained model, {name} by {worst:.4f}. Run the stage "
            "export again; if that changes nothing, the folder is not usable."
        )
    shown = ", ".join(f"{name} {value:.4f}" for name, value in zip(compared, now, strict=True))
    how = "the same scores" if worst < SAME else "nearly the same scores"
    log.say(f"finetune: {export.path / 'hf'}, loaded with its own tokenizer, has {how}: {shown}")
    write_json(file, _Saved(export=export.fingerprint, scores={name: found[name] for name in names}))


def _scores(recipe: Recipe, run: RunFolder, hf: Path) -> dict[str, Any]:
    examples = run.artifact("examples")
    _check_tokenizer(recipe, examples, hf)
    heldout = HeldOut(examples, run.artifact("vocab"), recipe.evaluate_length(), SILENT)
    settings = recipe.evaluate.model_copy(update={"samples": 0})
    model = load_model(hf, resolve_device(settings.device))
    assert isinstance(model, Classifier | VectorModel)
    return task_of(recipe.task).evaluate(model, heldout, settings).scores


def _check_tokenizer(recipe: Recipe, examples: Artifact, hf: Path) -> None:
    """Raise `ArtifactError` if the tokenizer of the folder gives other ids for the held-out files than training had."""
    data = recipe.train.imported_data()[0]
    assert data.files is not None
    files = find_files(data.path, data.files, f"{data.key}.data")
    tokenizer = load_tokenizer(hf)
    own = task_of(recipe.task).own_examples
    assert own is not None
    kind = own.kind(data.files)
    # Training texts are read only if a share of them is held out.
    read = files._replace(train=()) if files.heldout else files
    columns = read_splits(kind, read, recipe.examples.heldout, tokenizer, SILENT).heldout
    stored = type(columns).open(examples, "heldout").arrays
    if other := [name for name, array in columns.arrays.items() if not np.array_equal(array, stored[name])]:
        raise ArtifactError(
            f"the tokenizer in {hf} reads the held-out files otherwise than training did ({other[0]} differ), or "
            f"{data.path} has changed since. Run the stage export again."
        )
