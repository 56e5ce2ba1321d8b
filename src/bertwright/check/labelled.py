"""The labelled texts of a recipe, measured in their files before examples are made from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bertwright.check.lengths import BYTES_A_TOKEN
from bertwright.core.errors import BertwrightError
from bertwright.examples.config import ImportedData
from bertwright.examples.labelled.read import find_files
from bertwright.examples.labelled.sizes import TextSizes, text_sizes
from bertwright.examples.sequences import Sequences
from bertwright.recipe import Recipe

_FEWEST_BYTES = 4
"""Bytes per token in the longest text of a file, at least, for its upper bound: 4.2 to 5.2 in seven sets of GLUE."""


def labelled_texts(recipe: Recipe) -> tuple[dict[int, Sequences], dict[str, int]]:
    """The training texts of each phase by index, with estimated lengths, and the number of held-out texts by length.

    Both are empty if the recipe has none, or if files are missing or invalid: `check` and the stage report those.
    """
    phases = [each for each in recipe.train.imported_data() if each.texts is not None]
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
    assert data.texts is not None
    files = find_files(data.path, data.texts, f"{data.key}.data")
    train, heldout = ([text_sizes(file, data.texts) for file in group] for group in (files.train, files.heldout))
    total, held = (sum(each.number for each in group) for group in (train, heldout))
    kept = total if files.heldout else round(total * (1 - share))
    return train, kept, held + total - kept


def _cut(sizes: Sequence[TextSizes], number: int, data: ImportedData) -> Sequences:
    """`number` texts, with estimated lengths after cutting to that of the phase."""
    special = 3 if data.texts is not None and data.texts.pairs else 2
    read = [np.minimum(data.length, special + each.read / BYTES_A_TOKEN) for each in sizes if len(each.read)]
    if not read:
        return Sequences((number,), data.length, 0.0, data.length)
    # Each text that was read stands for as many of its file.
    share = [each.number / len(each.read) for each in sizes if len(each.read)]
    weights = np.repeat(share, [len(lengths) for lengths in read])
    lengths = np.concatenate(read)
    mean = float(np.average(lengths, weights=weights))
    deviation = float(np.sqrt(np.average((lengths - mean) ** 2, weights=weights)))
    known = [math.inf if each.longest is None else special + each.longest / _FEWEST_BYTES for each in sizes]
    return Sequences((number,), mean, deviation, math.ceil(min(data.length, max(known))))
