"""Reads files of pairs of texts to find out their columns, and how many pairs a step may compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertwright.examples.own_files import count_first
from bertwright.finetune.tasks import Key
from bertwright.tasks.embedding.config import PairFiles
from bertwright.tasks.embedding.files import read_layout

_STEPS = 20
"""Steps that a pass over the pairs has at least, if there are more than a few pairs."""
_LEAST = 8


def guess_columns(files: Sequence[Path], own: PairFiles) -> dict[str, Key]:
    """The columns of pairs, from training files and those held out; left out where files differ. `own` has what the
    user says. Raises `DataError` as `read_layout`."""
    layouts = [read_layout(file, own.layout) for file in files]
    keys = {}
    for name in ("anchor", "positive", "negatives", "group"):
        value = getattr(layouts[0], name)
        if value and all(getattr(each, name) == value for each in layouts):
            why = "" if getattr(own.layout, name) else "guessed from the names of columns"
            keys[name] = Key(list(value) if name == "negatives" else value, why)
    return keys


def batch_of_pairs(files: Sequence[Path], own: PairFiles, usual: Key) -> Key:
    """How many pairs a step compares: the usual number, or of few pairs a power of 2 that gives some steps."""
    pairs, wanted = 0, usual.value * _STEPS
    for file in files:
        pairs += count_first(own, file, wanted - pairs)
    if pairs >= wanted:
        return usual
    fitting = max(_LEAST, 1 << max(0, (pairs // _STEPS).bit_length() - 1))
    return Key(min(fitting, usual.value), f"{pairs:,} pairs are few: at least {_STEPS} steps a pass over them")
