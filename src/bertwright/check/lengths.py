"""The lengths of the examples of each phase, where they are known: from finished examples, or from labelled texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.examples.config import ImportedData, PlanSet
from bertwright.examples.sequences import Sequences
from bertwright.recipe import Recipe

BYTES_A_TOKEN = 5
"""Approximate bytes of text per token, with a vocabulary of usual size."""
OfSets = Mapping[str, Sequences]
"""Examples of each plan set, by name."""
OfPhases = Mapping[int, Sequences]
"""Examples of phases, by index."""


def counted_examples(recipe: Recipe, counts: Mapping[str, Any]) -> tuple[dict[str, Sequences], dict[int, Sequences]]:
    """The examples of each plan set, and of each phase with data made elsewhere, from the counts of an artifact."""
    train = counts["train"]
    sets = {
        name: Sequences.counted(rows, train["sequences"][name], int(name.partition("-")[0]))
        for name, rows in train.get("rows", {}).items()
    }
    imported = {}
    for data in recipe.train.imported_data():
        if (counted := counts.get("imported", {}).get(data.key)) is not None:
            imported[data.phase] = _imported(int(counted["examples"]), _lengths(train, data), data.length)
    return sets, imported


def _imported(number: int, counts: Mapping[str, Any], length: int) -> Sequences:
    if "lengths" in counts:
        return Sequences.counted((number,), counts, length)
    return Sequences.guessed((number,), float(counts.get("mean_length", 0.9 * length)), length)


def _lengths(train: Mapping[str, Any], data: ImportedData) -> Mapping[str, Any]:
    """The sequence counts of a phase's data; labelled texts are one set for all phases, cut to the length of each."""
    counted: Mapping[str, Any] = train["sequences"].get(f"{data.length}" if data.texts else data.folder, {})
    return counted


def of_phase(recipe: Recipe, index: int, sets: OfSets, imported: OfPhases) -> Sequences | None:
    """The examples of phase `index`, which may also be those of another run; None if they are not known."""
    phase = recipe.train.phases[index]
    name = PlanSet(length=phase.length, document_range=phase.document_range).name
    if phase.data is None:
        return sets.get(name)
    if index not in imported and (phase.data / MANIFEST).is_file():
        train = open_artifact(phase.data, "examples").counts["train"]
        if name in train["rows"]:
            return Sequences.counted(train["rows"][name], train["sequences"][name], phase.length)
    return imported.get(index)
