"""Checks whether the training loss leaves the bands that its recipe expects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bertwright.train.expected_config import ExpectedLoss

OUTSIDE = "outside_band"
"""Key of a metrics row that holds this message."""


def outside(bands: Sequence[ExpectedLoss], row: Mapping[str, Any], steps: int) -> str:
    """Return what is wrong with the loss of a metrics row covering the last `steps` steps, or "" if nothing is.

    The loss is the sum of the row's terms, a mean over its steps. A loss that is not a number is outside any band.
    """
    last = int(row["total_steps"])
    due = [band for band in bands if last - steps < band.step <= last]
    terms = [value for name, value in row.items() if name.endswith("_loss") and not name.startswith("heldout_")]
    loss = math.fsum(value if value is not None else math.nan for value in terms)
    left = [band for band in due if not band.low <= loss <= band.high]
    if not left:
        return ""
    band = left[-1]
    where = "below" if loss < band.low else "above" if loss > band.high else "outside"
    return (
        f"step {last:,}: the training loss {loss:.3f} is {where} the {band.low:g} to {band.high:g} that the recipe "
        f"expects at step {band.step:,} (train.expected)"
    )
