"""The machines that a plan is for: this one, or those of the section `[hardware]` in the file of a place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.resources import default_workers, memory_size
from bertwright.core.toml import read_toml, validate
from bertwright.estimate.devices import SMALLEST, Device, find_gpu, gpu_of_driver, processor
from bertwright.estimate.machine_facts import OtherMachine, gpu_names, training_gpus
from bertwright.recipe import Recipe
from bertwright.shipped import find_shipped

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
    defaults = {
        key: value for key in ("gpus", "ranks", "nodes") if isinstance(value := values.get(key), int) and value > 0
    }
    if values.get("kind") == "torchrun":
        defaults.setdefault("ranks", TORCHRUN_RANKS)
    if "ranks" in defaults:
        defaults["gpus"] = defaults["ranks"]
    sized = next((key for key in _SIZES if isinstance(values.get(key), str) and values[key]), "")
    if given.get("gpu") and sized and "gpus" not in {**defaults, **given}:
        raise RecipeError(
            f"{file}: [hardware] does not say how many GPUs a machine with {sized} = {values[sized]!r} has, so the "
            "forecast would be for one. Add for example gpus = 8 to [hardware]."
        )
    # The section is validated alone, so its keys have to be found without its name.
    own = {key.removeprefix("hardware."): line for key, line in lines.items() if key.startswith("hardware.")}
    return cast(HardwareConfig, validate(HardwareConfig, {**defaults, **given}, file, {**lines, **own}))


NETWORK = 25.0
"""GB/s between machines for each GPU, one direction, if a place does not give it: 200 Gbit/s InfiniBand."""
CPU_NETWORK = 1.25
"""The same between machines without GPUs: 10 Gbit/s Ethernet."""
_HOST_WATTS = 0.35
"""Power of the rest of a machine relative to its GPUs: processors, memory, fans, power supplies."""
_IDLE_WATTS = 40.0
"""Watts of a machine without GPUs, in addition to its cores."""


@dataclass(frozen=True)
class Machine:
    """The training machines and their cost."""

    title: str
    """Human-readable name."""
    device: Device
    """Device of each rank."""
    each: int
    """Ranks per machine."""
    nodes: int
    """Number of machines."""
    cores: int
    """Cores per machine."""
    network: float
    """Bandwidth between machines for each rank, one direction, in bytes per second."""
    watts: float
    """Watts of a machine at full load."""
    price: float = 0.0
    """Price of a machine per hour; 0 if not known."""
    currency: str = ""
    here: bool = False
    """Whether this is the current machine."""

    @property
    def ranks(self) -> int:
        """Number of training processes."""
        return self.each * self.nodes

    @property
    def checked(self) -> OtherMachine:
        """What a recipe is checked for, if this is not the current machine."""
        title = self.title if self.nodes == 1 else f"{self.nodes} nodes of {self.title}"
        device = self.device
        return OtherMachine(title, device.gpu, device.capability, device.memory, self.each, self.cores, self.ranks)


def this_machine(recipe: Recipe, ranks: int = 1) -> Machine:
    """This machine with `ranks` training processes, each on its own GPU or on its share of the cores."""
    cores, sizes = default_workers(), training_gpus(recipe)
    if not sizes:
        device = processor(max(1, cores // ranks), memory_size() / ranks)
        return _machine(f"this machine, {cores} cores", device, ranks, cores, here=True)
    name = next(iter(gpu_names()), "a GPU")
    # For AMD GPUs neither name nor memory (0) is known without torch.
    device = gpu_of_driver(name, float(sizes[0])) or replace(find_gpu(SMALLEST), name=name, memory=float(sizes[0]))
    return _machine(f"this machine, {ranks} of {len(sizes)} GPUs ({name})", device, ranks, cores, here=True)


@dataclass(frozen=True)
class Place:
    """What a plan takes from a place file."""

    machine: Machine
    overrides: tuple[str, ...]
    """Overrides that its machines require of any recipe; applied before those of the command line."""


def read_place(place: Path | str) -> Place:
    """Read the machines from the `[hardware]` section of a place; `RecipeError` if the file or section is missing.

    `place` is a path, or the name of a place that comes with the package.
    """
    path = find_shipped("place", place)
    values, lines = read_toml(path, "place")
    if (hardware := hardware_in(values, lines, str(path))) is None:
        raise RecipeError(
            f"{path} does not describe the hardware of its machines. Add a section [hardware], such as: gpu = "
            '"h100", gpus = 8.'
        )
    overrides = values.get("overrides", [])
    if not isinstance(overrides, list) or not all(isinstance(one, str) for one in overrides):
        raise RecipeError(
            f'{path}:{lines.get("overrides", 0)}: overrides: give a list, such as ["train.precision=fp16"].'
        )
    return Place(machine_of(hardware), tuple(overrides))


def refuse_other_device(recipe: Recipe, machine: Machine) -> None:
    """Raise `RecipeError` if a recipe for a processor is planned for the GPUs of a place, or the reverse."""
    if recipe.train.device == ("cpu" if machine.device.gpu else "cuda"):
        theirs = f"plans for its GPUs ({machine.device.name})" if machine.device.gpu else "has no GPUs"
        raise RecipeError(
            f"train.device = {recipe.train.device}, but the place {theirs}. Set train.device=auto, or give another "
            "place."
        )


def machine_of(hardware: HardwareConfig) -> Machine:
    """The machines that a `[hardware]` section describes."""
    cores = hardware.cores or default_workers()
    if hardware.gpu:
        device, each = find_gpu(hardware.gpu), hardware.gpus
        title = f"{each} x {device.name}"
    else:
        each = hardware.ranks
        memory = hardware.memory_gb * 1e9 or float(memory_size())
        device = processor(max(1, cores // each), memory / each, hardware.cpu_isa)
        title = f"{cores} cores"
    if hardware.gpu and hardware.memory_gb:
        device = replace(device, memory=hardware.memory_gb * 1e9)
    machine = _machine(title, device, each, cores)
    return replace(
        machine,
        nodes=hardware.nodes,
        network=hardware.network_gb * 1e9 or machine.network,
        watts=hardware.watts or machine.watts,
        price=hardware.price,
        currency=hardware.currency,
    )


def _machine(title: str, device: Device, each: int, cores: int, here: bool = False) -> Machine:
    watts = each * device.watts * (1 + _HOST_WATTS) if device.gpu else each * device.watts + _IDLE_WATTS
    network = 1e9 * (NETWORK if device.gpu else CPU_NETWORK)
    return Machine(title, device, each, 1, cores, network, watts, here=here)


def workers_of(recipe: Recipe, machine: Machine) -> tuple[int, int]:
    """Numbers of processes that make the corpus and the examples on one machine."""
    free = default_workers() if machine.here else machine.cores
    corpus = recipe.corpus.workers if recipe.corpus else 0
    return corpus or free, recipe.examples.workers or free
