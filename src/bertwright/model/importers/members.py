"""The kinds of files that weights are read from. Add a reader here: the first that finds its files reads them."""

from __future__ import annotations

from pathlib import Path

from bertwright.core.errors import ArtifactError
from bertwright.model.importers.pickled import PickledWeights
from bertwright.model.importers.safetensors_files import SafetensorsWeights
from bertwright.model.importers.tensorflow import TensorFlowWeights
from bertwright.model.importers.weights import Weights

SOURCES: tuple[type[Weights], ...] = (SafetensorsWeights, PickledWeights, TensorFlowWeights)
"""In the order in which a folder is searched."""


def find_weights(path: Path) -> Weights | None:
    """Return the weights in a folder or a file, of the first kind that it has; None if it has none that can be read.

    Nothing of the files is read yet, so that damage to them is found only when something is asked for.
    """
    return next((found for source in SOURCES if (found := source.find(path)) is not None), None)


def open_weights(path: Path) -> Weights:
    """Return the weights in a folder or a file. Raises `ArtifactError` if it has none that can be read."""
    if (found := find_weights(path)) is None:
        known = ", ".join(f"a {source.title}" for source in SOURCES)
        what = "has no weights" if path.exists() else "does not exist, so there are no weights to read"
        raise ArtifactError(
            f"{path} {what}. These are read: {known}. Give a folder that has one of them, or the file itself."
        )
    return found
