"""The forecast's sequences per second beside those that others published, for the same network, batch and machines.

Their programs are not ours: NVIDIA's pads all rows to the length of the phase, MLPerf's submissions have kernels made
for their machines. The band of a forecast is half to twice its value.
"""

import math

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate import known_data
from bertwright.estimate.machine import HardwareConfig, machine_of, read_place
from bertwright.plan.plan import make_plan


def rate(name: str, keys: list[str], hardware: HardwareConfig, phase: int = 0) -> float:
    """Sequences per second of a phase."""
    recipe = Recipe.load(name, keys, given=False)
    return (
        recipe.train.phases[phase].batch / make_plan(recipe, {}, machine_of(hardware))["phases"][phase]["step_seconds"]
    )


PADDED = [
    # NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/README.md, "Training performance results", length 128
    ("a100", 1, "fp16", 580),
    ("a100", 8, "fp16", 4591),
    ("a100", 8, "tf32", 2505),
    ("v100", 1, "fp16", 224),
    ("v100", 8, "fp16", 1746),
    ("v100", 8, "fp32", 387),
]


@each_row(("gpu", "gpus", "precision", "published"), PADDED)
def test_full_rows_of_128_are_forecast_within_a_fifth(
    gpu: str, gpus: int, precision: str, published: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(known_data._FILL, "next-sentence", (1.0, math.inf, 1.0))
    forecast = rate("nvidia-large", [f"train.precision={precision}"], HardwareConfig(gpu=gpu, gpus=gpus, cores=40))
    assert forecast == pytest.approx(published, rel=0.2)


SPR = {"cpu_isa": "amx", "cores": 112, "ranks": 2, "memory_gb": 512}
MLPERF = [
    # Training results of MLCommons: samples at the end / time, evaluation included; length 512, 254 tokens on average.
    ("2.1, Intel, two Xeon 8480+ each, bf16", 3072, "bf16", {**SPR, "nodes": 16}, 1037),
    ("2.1, NVIDIA DGX A100, fp16", 448, "fp16", {"gpu": "a100", "gpus": 8}, 2426),
    ("2.1, NVIDIA DGX A100, fp16", 3072, "fp16", {"gpu": "a100", "gpus": 8, "nodes": 8}, 18_120),
    ("3.0, NVIDIA DGX H100, fp8", 768, "bf16", {"gpu": "h100", "gpus": 8}, 7767),
    ("3.0, NVIDIA DGX H100, fp8", 4608, "bf16", {"gpu": "h100", "gpus": 8, "nodes": 8}, 53_332),
    ("3.0, Quanta, two H100 PCIe, fp8", 448, "bf16", {"gpu": "h100-pcie", "gpus": 2}, 1300),
    ("3.1, xFusion, L40S, fp8", 448, "bf16", {"gpu": "l40s", "gpus": 8}, 1190),
    ("4.0, NVIDIA, H200, fp8", 768, "bf16", {"gpu": "h200", "gpus": 8}, 7973),
    ("4.1, NVIDIA, B200, fp8", 768, "bf16", {"gpu": "b200", "gpus": 8}, 10_779),
]


@each_row(("system", "batch", "precision", "machines", "published"), MLPERF)
def test_mlperfs_training_is_forecast_within_its_band(
    system: str, batch: int, precision: str, machines: dict[str, object], published: float
) -> None:
    keys = [f"train.phases.0.batch={batch}", f"train.precision={precision}"]
    keys += ["train.device=cpu"] if "gpu" not in machines else []
    forecast = rate("mlperf-large", keys, HardwareConfig.model_validate({"cores": 96, **machines}))
    assert 0.5 < forecast / published < 1.5, f"{system}: {forecast:.0f}"


def test_sockets_of_sapphire_rapids_are_forecast_within_a_third_on_any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the processor of this machine can do does not count."""
    keys = ["train.phases.0.batch=3072", *read_place("spr").overrides]
    for flags in ({"avx2"}, {"avx2", "avx512f", "avx512_bf16", "amx_bf16"}):
        monkeypatch.setattr("bertwright.estimate.devices.processor_flags", lambda flags=frozenset(flags): flags)
        recipe = Recipe.load("mlperf-large", keys, given=False)
        place = read_place("spr")
        machine = machine_of(HardwareConfig.model_validate({**SPR, "nodes": 16}))
        assert machine.device == place.machine.device
        forecast = 3072 / make_plan(recipe, {}, machine)["phases"][0]["step_seconds"]
        assert forecast == pytest.approx(1037, rel=1 / 3)


@each_row(("length", "share"), [(128, 0.86), (256, 0.71), (512, 254 / 512)])
def test_pairs_of_a_wikipedia_fill_less_of_longer_rows(length: int, share: float) -> None:
    """MLPerf's pairs of 512 tokens have 254, so that packing them gains a factor of 2.012."""
    recipe = Recipe.load("nvidia-large", [f"train.phases.1.length={length}"], given=False)
    plan = recipe.plan_sets()[-1]
    assert known_data.estimate_examples(plan, recipe.examples, None).mean_length / length == pytest.approx(
        share, abs=0.01
    )
