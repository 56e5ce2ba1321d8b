"""What this code was measured to reach on one GPU, which forecasts for all GPUs scale by data sheets."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class MeasuredGpu:
    """The numbers of `measured.toml`, which explains them."""

    gpu: str
    date: str
    tree: str
    """First digits of the commit that was measured."""
    products: float
    products_in_a_step: float
    moves: float
    layer_seconds: float
    pass_seconds: float
    step_seconds: float
    rates: tuple[dict[str, Any], ...]

    @property
    def source(self) -> str:
        """Where the numbers come from, for people."""
        return f"rates from a measurement of this code on one {self.gpu.upper()} of {self.date}, tree {self.tree}"


@cache
def measured_gpu() -> MeasuredGpu:
    """The measurement."""
    table = tomllib.loads(files("bertwright.estimate").joinpath("measured.toml").read_text(encoding="utf-8"))
    seconds = {f"{part}_seconds": table.pop(part) for part in ("layer", "pass", "step")}
    return MeasuredGpu(**{**table, **seconds, "rates": tuple(table["rates"])})
