"""The lengths of the examples of each phase, where they are known: from finished examples, or from labelled texts,
which are measured in their files before examples are made from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import BertwrightError
from bertwright.examples.config import ImportedData, PlanSet
from bertwright.examples.own_files import find_files
from bertwright.examples.sequences import Sequences
from bertwright.recipe import Recipe

if TYPE_CHECKING:
    from bertwright.examples.labelled.sizes import TextSizes


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
            imported[data.phase] = _imported_examples(int(counted["examples"]), _lengths(train, data), data.length)
    return sets, imported


def _imported_examples(number: int, counts: Mapping[str, Any], length: int) -> Sequences:
    if "lengths" in counts:
        return Sequences.counted((number,), counts, length)
    return Sequences.guessed((number,), float(counts.get("mean_length", 0.9 * length)), length)


def _lengths(train: Mapping[str, Any], data: ImportedData) -> Mapping[str, Any]:
    """The sequence counts of a phase's data; labelled texts are one set for all phases, cut to the length of each."""
    counted: Mapping[str, Any] = train["sequences"].get(f"{data.length}" if data.files else data.folder, {})
    return counted


def phase_examples(recipe: Recipe, index: int, sets: OfSets, imported: OfPhases) -> Sequences | None:
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


_FEWEST_BYTES = 4
"""Bytes per token in the longest text of a file, at least, for its upper bound: 4.2 to 5.2 in seven sets of GLUE."""


def labelled_texts(recipe: Recipe) -> tuple[dict[int, Sequences], dict[str, int]]:
    """The training texts of each phase by index, with estimated lengths, and the number of held-out texts by length.

    Both are empty if the recipe has none, or if files are missing or invalid: `check` and the stage report those.
    """
    phases = [each for each in recipe.train.imported_data() if each.files is not None]
    if not phases:
        return {}, {}
    try:
        sizes, number, heldout = _sizes(phases[0], recipe.examples.heldout)
    except BertwrightError:
        return {}, {}
    lengths = {each.length: heldout for each in phases}
    return {each.phase: _cut(sizes, number, each) for each in phases}, {f"{name}": n for name, n in lengths.items()}


def _sizes(data: ImportedData, share: float) -> tuple[list[TextSizes], int, int]:
    """The texts of the training files, how many of them are trained on, and the number held out; if a `share` of them
    is, which ones is not determined here."""
    assert data.files is not None
    files = find_files(data.path, data.files, f"{data.key}.data")
    train, heldout = ([data.files.sizes(file) for file in group] for group in (files.train, files.heldout))
    total, held = (sum(each.number for each in group) for group in (train, heldout))
    kept = total if files.heldout else round(total * (1 - share))
    return train, kept, held + total - kept


def _cut(sizes: Sequence[TextSizes], number: int, data: ImportedData) -> Sequences:
    """`number` texts, with estimated lengths after cutting to that of the phase."""
    import numpy as np  # slow to import, and not needed by pre-training

    special = data.files.specials if data.files else 2
    read = [
        np.minimum(data.length, special + each.read / BYTES_A_TOKEN) * (1 if each.sequences is None else each.sequences)
        for each in sizes
        if len(each.read)
    ]
    if not read:
        return Sequences((number,), data.length, 0.0, data.length)
    # Each text that was read stands for as many of its file.
    share = [each.number / len(each.read) for each in sizes if len(each.read)]
    weights = np.repeat(share, [len(lengths) for lengths in read])
    lengths = np.concatenate(read)
    mean = float(np.average(lengths, weights=weights))
    deviation = float(np.sqrt(np.average((lengths - mean) ** 2, weights=weights)))
    known = [math.inf if each.longest is None else special + each.longest / _FEWEST_BYTES for each in sizes]
    most = max(1 if each.sequences is None else int(each.sequences.max(initial=1)) for each in sizes)
    return Sequences((number,), mean, deviation, most * math.ceil(min(data.length, max(known))))
