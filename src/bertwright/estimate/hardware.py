"""The section `[hardware]` of a place file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.toml import validate

TORCHRUN_RANKS = 2
"""Ranks per machine of a place of kind torchrun that gives no number."""
_SIZES = ("accelerators", "vm_size", "gpus")
"""Keys of a place that name a machine type in the target's terms."""


class HardwareConfig(Section):
    """The section `[hardware]` of a place: the equipment of one machine, the number of machines, and their price."""

    gpu: str = ""
    """Name of the GPUs, such as "h100" or "a100"; empty means that processors train."""
    cpu_isa: Literal["auto", "avx2", "avx512", "avx512_bf16", "amx"] = "auto"
    """Best instruction set of the processors, if there is no GPU: `amx` for a Xeon of the 4th generation or later;
    `auto` means that of this machine."""
    gpus: int = Field(1, ge=1, le=1024)
    """GPUs per machine; each is one rank."""
    ranks: int = Field(1, ge=1, le=1024)
    """Ranks per machine without GPUs; they share its cores and memory."""
    cores: int = Field(0, ge=0, le=4096)
    """Cores per machine, which make the corpus, and train if there is no GPU; 0 uses the number of cores of this
    machine."""
    memory_gb: float = Field(0.0, ge=0)
    """Memory (GB) of each GPU, or of the machine if it has none; 0 uses that of the data sheet, or of this machine."""
    nodes: int = Field(1, ge=1, le=100_000)
    """Number of machines."""
    network_gb: float = Field(0.0, ge=0)
    """GB/s between machines for each rank, one direction; 0 means 25 (200 Gbit/s) with GPUs, 1.25 without."""
    watts: float = Field(0.0, ge=0)
    """Watts of a machine at full load; 0 estimates the consumption of its devices and everything else."""
    price: float = Field(0.0, ge=0)
    """Price of a machine per hour, in `currency`; 0 means that no cost is computed."""
    currency: str = Field("USD", min_length=1, max_length=8)
    """Currency of the price."""


def hardware_in(values: Mapping[str, Any], lines: Mapping[str, int], file: str) -> HardwareConfig | None:
    """The `[hardware]` section of a place file, or None if it has none; raises `RecipeError` if it is invalid.

    GPUs, ranks and nodes that the place gives as numbers are defaults for the section; if it gives ranks, that many
    are started, each on its own GPU. The number of GPUs of a named machine size is not known here, so it is a
    `RecipeError` if it is not given.
    """
    if (given := values.get("hardware")) is None:
        return None
    if not isinstance(given, dict):
        raise RecipeError(f"{file}: hardware is a section, not {given!r}. Write [hardware] and its keys below it.")
    asked = {
        key: value for key in ("gpus", "ranks", "nodes") if isinstance(value := values.get(key), int) and value > 0
    }
    if values.get("kind") == "torchrun":
        asked.setdefault("ranks", TORCHRUN_RANKS)
    if "ranks" in asked:
        asked["gpus"] = asked["ranks"]
    sized = next((key for key in _SIZES if isinstance(values.get(key), str) and values[key]), "")
    if given.get("gpu") and sized and "gpus" not in {**asked, **given}:
        raise RecipeError(
            f"{file}: [hardware] does not say how many GPUs a machine with {sized} = {values[sized]!r} has, so the "
            "forecast would be for one. Add for example gpus = 8 to [hardware]."
        )
    # The section is validated alone, so its keys have to be found without its name.
    own = {key.removeprefix("hardware."): line for key, line in lines.items() if key.startswith("hardware.")}
    return cast(HardwareConfig, validate(HardwareConfig, {**asked, **given}, file, {**lines, **own}))
