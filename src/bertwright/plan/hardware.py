"""The section `[hardware]` of a place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.toml import validate

_SIZES = ("accelerators", "vm_size", "gpus")
"""Keys of a place that name, in the target's words, what a machine has."""


class HardwareConfig(Section):
    """The section `[hardware]` of a place: what one machine there has, how many there are, and what they cost."""

    gpu: str = ""
    """Name of its GPUs, such as "h100" or "a100"; empty: processors like those of this machine."""
    gpus: int = Field(1, ge=1, le=1024)
    """GPUs of a machine, each of which is a rank."""
    ranks: int = Field(1, ge=1, le=1024)
    """Ranks of a machine without GPUs, which share its cores and its memory."""
    cores: int = Field(0, ge=0, le=4096)
    """Cores of a machine, which make the corpus and train where there is no GPU; 0: as many as here."""
    memory_gb: float = Field(0.0, ge=0)
    """Memory (GB) of each GPU, or of the machine where it has none; 0: that of the data sheet, or of this machine."""
    nodes: int = Field(1, ge=1, le=100_000)
    """Machines."""
    network_gb: float = Field(0.0, ge=0)
    """GB/s between machines for each rank, one direction; 0: 25 (200 Gbit/s) with GPUs, 1.25 without."""
    watts: float = Field(0.0, ge=0)
    """Watts of a machine at full work; 0: about what its devices and the rest take."""
    price: float = Field(0.0, ge=0)
    """Price of a machine for an hour, in `currency`; 0: none is reckoned."""
    currency: str = Field("USD", min_length=1, max_length=8)
    """Of the price."""


def hardware_in(values: Mapping[str, Any], lines: Mapping[str, int], file: str) -> HardwareConfig | None:
    """The section in the values of a place file, if it has one; `RecipeError` where something in it is wrong.

    GPUs, ranks and nodes that the place gives as numbers need not be said again. How many GPUs a size of machine has is
    not known here: `RecipeError` where they are not said.
    """
    if (given := values.get("hardware")) is None:
        return None
    asked = {
        key: value for key in ("gpus", "ranks", "nodes") if isinstance(value := values.get(key), int) and value > 0
    }
    sized = next((key for key in _SIZES if isinstance(values.get(key), str) and values[key]), "")
    if isinstance(given, dict) and given.get("gpu") and sized and "gpus" not in {**asked, **given}:
        raise RecipeError(
            f"{file}: [hardware] does not say how many GPUs a machine with {sized} = {values[sized]!r} has, and the "
            "forecast would be of one. Add gpus = 8, say, to [hardware]."
        )
    own = {key.removeprefix("hardware."): line for key, line in lines.items() if key.startswith("hardware.")}
    section = {**asked, **given} if isinstance(given, dict) else given
    return cast(HardwareConfig, validate(HardwareConfig, section, file, {**lines, **own}))
