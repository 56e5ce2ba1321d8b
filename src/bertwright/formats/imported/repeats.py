"""Training examples that are held out as well are taken out of what was brought in.

That is so where files for testing hold examples of the training files, or two phases hold out different things.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import read_bytes
from bertwright.examples.imported_layout import ENDS
from bertwright.examples.instances import ends, gather
from bertwright.examples.store import map_file
from bertwright.formats.imported.tasks import HASHES, ImportTask

_AT_ONCE = 1 << 14
"""Examples written together."""
_OF_TOKENS, _OF_PREDICTIONS = ("tokens",), ("positions", "labels")


def repeated(tasks: Sequence[ImportTask], store: Path) -> NDArray[np.int64]:
    """[K] which of the examples of `tasks`, one file after another, are held out in `store` too, by their hash."""
    heldout = map_file(store / "heldout.hashes", "<u8")
    parts = [np.frombuffer(read_bytes(task.part(HASHES)), "<u8") for task in tasks]
    masks = [np.isin(part, heldout) for part in parts]
    return np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *masks]))


def leave_out(folder: Path, kinds: Mapping[str, str], rows: NDArray[np.int64]) -> dict[str, int]:
    """Take the examples `rows` [K] out of the arrays in `folder`, of element types `kinds`; the counts of the rest."""
    cu = {name: map_file(folder / name, "<u8") for name in ENDS}
    kept = np.delete(np.arange(len(cu["cu_seqlens"]) - 1), rows)
    for name, kind in kinds.items():
        values = map_file(folder / name, kind)
        with (folder / f".{name}").open("wb") as out:
            for start in range(0, len(kept), _AT_ONCE):
                out.write(_taken(name, values, cu, kept[start : start + _AT_ONCE]).tobytes())
        os.replace(folder / f".{name}", folder / name)
    for name, sums in cu.items():
        (folder / f".{name}").write_bytes(ends(np.diff(sums)[kept]).astype("<u8").tobytes())
        os.replace(folder / f".{name}", folder / name)
    labels = map_file(folder / "next_sentence_labels", kinds["next_sentence_labels"])
    sizes = {name: int(map_file(folder / name, "<u8")[-1]) for name in ENDS}
    return {
        "examples": len(kept),
        "tokens": sizes["cu_seqlens"],
        "predictions": sizes["cu_predictions"],
        "labelled": int((labels >= 0).sum()),
    }


def _taken(
    name: str, values: NDArray[Any], cu: Mapping[str, NDArray[np.uint64]], rows: NDArray[np.int64]
) -> NDArray[Any]:
    """The values of `rows` in a column that has one for each token, prediction or example."""
    if name in _OF_TOKENS:
        return values[gather(cu["cu_seqlens"], rows)[0]]
    return values[gather(cu["cu_predictions"], rows)[0] if name in _OF_PREDICTIONS else rows]
