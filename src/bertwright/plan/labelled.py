"""The labelled texts of a recipe, counted in their files before examples are made from them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from bertwright.check.resources import BYTES_A_TOKEN
from bertwright.core.errors import BertwrightError
from bertwright.examples.config import ImportedData
from bertwright.examples.labelled.read import Omitted, Text, find_files, read_texts
from bertwright.plan.sequences import Sequences
from bertwright.recipe import Recipe


def labelled_texts(recipe: Recipe) -> tuple[dict[int, Sequences], dict[str, int]]:
    """The training texts of each phase by index, with estimated lengths, and the number of held-out texts by length.

    Both are empty if the recipe has none, or if files are missing or invalid: `check` and the stage report those.
    """
    phases = [each for each in recipe.train.imported_data() if each.texts is not None]
    if not phases:
        return {}, {}
    try:
        training, heldout = _texts(phases[0], recipe.examples.heldout)
    except BertwrightError:
        return {}, {}
    lengths = {each.length: heldout for each in phases}
    return {each.phase: _cut(training, each) for each in phases}, {f"{name}": n for name, n in lengths.items()}


def _texts(data: ImportedData, share: float) -> tuple[list[Text], int]:
    """The texts to train on, and the number held out; if a `share` is held out, which ones is not determined here."""
    assert data.texts is not None
    files = find_files(data.path, data.texts, f"{data.key}.data")
    train, heldout = (
        [text for file in group for text in read_texts(file, data.texts, Omitted())]
        for group in (files.train, files.heldout)
    )
    if files.heldout:
        return train, len(heldout)
    kept = round(len(train) * (1 - share))
    return train[:kept], len(train) - kept


def _cut(texts: Sequence[Text], data: ImportedData) -> Sequences:
    """The number of texts, and their estimated lengths after cutting to that of the phase."""
    special = 3 if data.texts is not None and data.texts.pairs else 2
    sizes = [len(text.first.encode()) + len(text.second.encode()) for text in texts]
    lengths = [min(float(data.length), special + size / BYTES_A_TOKEN) for size in sizes]
    return Sequences((len(texts),), fmean(lengths or [data.length]), pstdev(lengths or [0.0]))
