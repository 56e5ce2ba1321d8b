"""What the heads of the shipped recipes say of keys, time and hardware is so."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from tests.pipeline.command import RECIPES
from tests.pipeline.conftest import Call
from tests.pipeline.heads import differences, entries, head, keys, overrides, presets_of
from tests.rows import each_row

from bertwright import Recipe
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.explain import explain
from bertwright.plan.plan import make_plan

SHIPPED = sorted(RECIPES.glob("*.toml"))


def said() -> Iterator[tuple[Path, str, list[str]]]:
    """Each recipe with each entry of its head, and each group of keys and values in it."""
    for path in SHIPPED:
        for name, entry in {**entries(head(path)), **differences(path)}.items():
            for together in overrides(entry):
                yield path, name, together


@each_row(
    ("path", "together"),
    [pytest.param(path, keys, id=f"{path.stem}, {name}: {' '.join(keys)}") for path, name, keys in said()],
)
def test_the_recipe_takes_the_keys_of_its_head(
    path: Path, together: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{number}" for number in range(30_517))]
    for folder, name in (("downloads", "google-uncased-vocab.txt"), ("RUN/vocab", "vocab.txt")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_text("\n".join(words) + "\n")
    Recipe.load(path, together, given=False)


@each_row("path", SHIPPED)
def test_the_keys_that_a_head_names_exist(path: Path) -> None:
    for name, entry in {**entries(head(path)), **differences(path)}.items():
        for key in keys(entry):
            assert explain(Recipe, key).get("key") == key, f"{name}: {key}"


COLA = (8551, 1043)
"""Sentences of CoLA to train on and to validate with; a mean one has some 40 letters."""
PLANNED = [path for path in SHIPPED if "bertwright plan " in head(path)]
AMX = frozenset({"avx2", "avx512f", "avx512_bf16", "amx_bf16", "amx_tile"})


def write_cola(folder: Path) -> None:
    """As many sentences as CoLA has, of its mean length, in the layout of the data set `glue` at Hugging Face."""
    folder.mkdir(parents=True)
    for name, count in zip(("train", "validation"), COLA, strict=True):
        columns = {"sentence": ["A sentence has about forty letters here."] * count, "label": [0, 1] * (count // 2 + 1)}
        table = pyarrow.table({name: values[:count] for name, values in columns.items()})
        parquet.write_table(table, folder / f"{name}.parquet")


def spoken(hours: float) -> str:
    """Hours as heads give them: 57 s, 25 min, 8.3 h, 53 h."""
    if hours < 1 / 30:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} min" if hours < 2 else f"{hours:.1f} h" if hours < 10 else f"{hours:.0f} h"


@each_row("path", PLANNED)
def test_the_time_of_a_head_is_what_the_plan_says(
    path: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it names fits into the memory there. Elsewhere a plan without a GPU is for the processor it runs on."""
    monkeypatch.setattr("bertwright.estimate.devices.processor_flags", lambda: AMX)
    monkeypatch.chdir(tmp_path)
    write_cola(tmp_path / "glue" / "cola")
    says, _, command = entries(head(path))["time"].partition("bertwright plan ")
    words = shlex.split(command)
    assert words[0] == path.stem and "--place" in words
    done = call("plan", *words, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    plan = json.loads(done.out)
    low, high = (spoken(plan[bound]) for bound in ("low_hours", "high_hours"))
    assert f"{spoken(plan['total_hours'])} ({low} to {high})" in says
    assert plan["fits"], f"{plan['memory_bytes'] / 1e9:.1f} GB"


def test_a_recipe_says_how_long_it_takes() -> None:
    """By a plan, or because it was measured."""
    measured = {path.stem for path in SHIPPED} - {path.stem for path in PLANNED}
    assert measured == {"demo", "smoke", "wiki-mini"}
    assert all("about" in entries(head(RECIPES / f"{name}.toml"))["time"] for name in measured)


HARDWARE = {
    "nvidia-large": ("eight 32-GB GPUs", HardwareConfig(gpu="v100", gpus=8, cores=40)),
    "nvidia-base": ("eight 32-GB GPUs", HardwareConfig(gpu="v100", gpus=8, cores=40)),
    "ort-dgx2": ("DGX-2 (V100, 32 GB)", HardwareConfig(gpu="v100", gpus=16, cores=48)),
    "ort-azure-nc24": ("four V100 with 16 GB", HardwareConfig(gpu="v100-16", gpus=4, cores=24)),
    "hungarian": ("four V100 with 16 GB", HardwareConfig(gpu="v100-16", gpus=4, cores=24)),
    "mlperf-large": ("8 A100", HardwareConfig(gpu="a100", gpus=8, cores=96)),
    "modern-base": ("one GPU of Ampere or later with 80 GB", HardwareConfig(gpu="a100", cores=12)),
    "azure-glue": ("16 V100 with 32 GB", HardwareConfig(gpu="v100", gpus=8, nodes=2, cores=40)),
}
"""What heads name as hardware, and the forecast's name for it."""


@each_row("name", HARDWARE)
def test_a_recipe_fits_the_hardware_of_its_head(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_cola(tmp_path / "glue" / "cola")
    words, hardware = HARDWARE[name]
    assert words in entries(head(RECIPES / f"{name}.toml"))["hardware"]
    for preset in presets_of(RECIPES / f"{name}.toml"):
        plan = make_plan(Recipe.load(name, preset, given=False), {}, machine_of(hardware))
        assert plan["fits"], f"{preset}: {plan['memory_bytes'] / 1e9:.1f} GB"
