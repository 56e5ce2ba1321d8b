"""The machines of a place: what `[hardware]` says, and what is taken where it says nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.errors import RecipeError
from bertwright.estimate import machine as machines
from bertwright.estimate.machine import HardwareConfig, hardware_in, machine_of, this_machine, workers_of
from bertwright.launch.torchrun import TorchrunPlace

Load = Callable[..., Recipe]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has 6 cores and 24 GB."""
    monkeypatch.setattr(machines, "default_workers", lambda: 6)
    monkeypatch.setattr(machines, "memory_size", lambda: 24 * 10**9)


def test_gpus_have_one_rank_each_and_data_sheet_values() -> None:
    """8 H100 of 700 W, and 35 % more for the rest of the machine; InfiniBand of 200 Gbit/s, 25 GB/s, for each."""
    found = machine_of(HardwareConfig(gpu="h100", gpus=8, nodes=4, cores=96))
    assert (found.each, found.nodes, found.ranks, found.cores) == (8, 4, 32, 96)
    assert (found.device.name, found.device.memory, found.network) == ("h100", 80e9, 25e9)
    assert found.watts == pytest.approx(8 * 700 * 1.35) and not found.here
    assert (found.price, found.currency) == (0, "USD")


def test_values_of_the_place_override_the_data_sheet() -> None:
    found = machine_of(HardwareConfig(gpu="h100", memory_gb=94, network_gb=50, watts=9000, price=12.5, currency="EUR"))
    assert (found.device.memory, found.network, found.watts) == (94e9, 50e9, 9000)
    assert (found.price, found.currency) == (12.5, "EUR")


def test_ranks_without_gpus_share_cores_and_memory() -> None:
    """6 W for each core, and 40 W for the rest; Ethernet of 10 Gbit/s."""
    found = machine_of(HardwareConfig(cores=8, ranks=2, memory_gb=64))
    assert (found.each, found.cores, found.device.memory, found.network) == (2, 8, 32e9, 1.25e9)
    assert found.watts == pytest.approx(8 * 6 + 40) and found.device.watts == 24
    assert machine_of(HardwareConfig(cores=2, ranks=4)).device.watts == 6, "no rank has less than a core"


def test_missing_cores_and_memory_are_those_of_this_machine() -> None:
    found = machine_of(HardwareConfig(ranks=2))
    assert (found.cores, found.device.memory) == (6, 12e9)
    assert machine_of(HardwareConfig(gpu="h100")).cores == 6


def test_this_machine_trains_on_its_cores_or_its_gpus(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    found = this_machine(load(), 2)
    assert (found.each, found.nodes, found.device.name, found.device.memory) == (2, 1, "cpu", 12e9)
    assert found.device.watts == 18 and found.here
    monkeypatch.setattr(machines, "training_gpus", lambda recipe: (85 * 10**9, 1))
    monkeypatch.setattr(machines, "gpu_names", lambda: ("NVIDIA H100 80GB HBM3",))
    found = this_machine(load(), 2)
    assert (found.device.name, found.device.memory, found.each, found.here) == ("h100", 85e9, 2, True)
    monkeypatch.setattr(machines, "gpu_names", lambda: ("Accelerator 9",))
    found = this_machine(load(), 1)
    assert (found.device.name, found.device.memory) == ("Accelerator 9", 85e9)
    assert found.device.speeds == machines.find_gpu("t4").speeds


def test_workers_are_those_of_the_recipe_or_all_cores(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    there = machine_of(HardwareConfig(cores=48))
    recipe, open_ = load("corpus.workers=3", "examples.workers=5"), load("corpus.workers=0", "examples.workers=0")
    assert (workers_of(recipe, there), workers_of(open_, there)) == ((3, 5), (48, 48))
    assert workers_of(open_, this_machine(recipe)) == (6, 6)
    # After the machine is described, other work may begin on this one.
    mine = this_machine(recipe)
    monkeypatch.setattr(machines, "default_workers", lambda: 4)
    assert workers_of(open_, mine) == (4, 4)


def given(values: dict[str, Any]) -> HardwareConfig | None:
    return hardware_in(values, {}, "place.toml")


def test_hardware_overrides_numbers_of_the_place() -> None:
    place = {"gpus": 4, "ranks": 2, "nodes": 3}
    assert given(place) is None
    found = given({**place, "hardware": {"gpu": "h100"}})
    assert found and (found.gpus, found.ranks, found.nodes) == (2, 2, 3), "ranks that are given are those started"
    found = given({"gpus": 4, "hardware": {"gpu": "h100"}})
    assert found and (found.gpus, found.ranks) == (4, 1)
    found = given({**place, "hardware": {"gpu": "h100", "gpus": 8, "nodes": 1}})
    assert found and (found.gpus, found.ranks, found.nodes) == (8, 2, 1)
    found = given({"gpus": "all", "nodes": 0, "hardware": {}})
    assert found and (found.gpus, found.nodes) == (1, 1), "a container's list of GPUs is no number"


def test_a_plan_is_for_the_ranks_that_torchrun_starts() -> None:
    for place, ranks in (({"ranks": 8}, 8), ({}, TorchrunPlace().ranks)):
        for hardware in ({"gpu": "h100"}, {"cores": 8}):
            found = given({"kind": "torchrun", **place, "hardware": hardware})
            assert found and machine_of(found).each == ranks
    found = given({"kind": "torchrun", "hardware": {"gpu": "h100", "gpus": 4}})
    assert found and machine_of(found).each == 4


@each_row("key", ["accelerators", "vm_size", "gpus"])
def test_a_name_of_a_machine_type_needs_its_number_of_gpus(key: str) -> None:
    with pytest.raises(RecipeError, match="gpus = 8"):
        given({key: "all", "hardware": {"gpu": "h100"}})
    found = given({key: "all", "hardware": {"gpu": "h100", "gpus": 2}})
    assert found and found.gpus == 2
    assert given({key: "all", "hardware": {"cores": 4}}), "without GPUs there is nothing to count"


def test_a_mistake_in_the_hardware_has_the_line_of_its_key(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"place\.toml:7: price"):
        hardware_in({"hardware": {"price": -1}}, {"price": 2, "hardware.price": 7}, "place.toml")
