"""The modes of Intel's scripts as commands, each in a separate process, which records what it computed with."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.pipeline.command import fresh

from bertwright.train.machine.cpu_isa import lacking

STEPS = ("train.phases.0.steps=12", "train.phases.1.steps=4", "train.phases.1.schedule=constant", "train.device=cpu")


@dataclass(frozen=True)
class Trained:
    """A training by the only start of its run, and its output."""

    folder: Path
    facts: dict[str, Any]
    said: str


Mode = Callable[..., Trained]


@pytest.fixture(scope="module")
def mode(small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Mode:
    """`mode(precision, isa)`: that training; each is run once, unless a different `number` requests another."""

    @cache
    def train(precision: str, isa: str, number: int = 1) -> Trained:
        folder = small_examples(tmp_path_factory.mktemp("mode") / f"{precision}-{isa}-{number}")
        keys = (f"train.precision={precision}", f"train.cpu_isa={isa}")
        done = fresh("train", small_recipe, *STEPS, *keys, "--out", folder)
        assert done.code == 0, done.err
        (facts,) = json.loads((folder / "train" / "manifest.json").read_text())["counts"]["sessions"]
        return Trained(folder, facts, done.err)

    return train


@pytest.mark.parametrize(
    ("precision", "isa"),
    [("fp32", "avx512"), ("fp32", "amx"), ("bf16", "amx"), ("bf32", "amx"), ("fp32", "avx2")],
    ids=["avx-fp32", "fp32", "bf16", "bf32", "avx2"],
)
def test_each_mode_trains_with_what_it_names(precision: str, isa: str, mode: Mode) -> None:
    if reason := lacking(isa):
        pytest.skip(reason)
    done = mode(precision, isa)
    assert (done.facts["precision"], done.facts["isa"]) == (precision, isa)
    assert done.facts["machine"].endswith("AVX2" if isa == "avx2" else "AVX512")
    assert f"train: instructions up to {isa} (train.cpu_isa)" in done.said


@pytest.mark.skipif(bool(lacking("avx512")), reason="a bound on this processor would bound nothing")
def test_the_bits_follow_from_the_instructions(mode: Mode) -> None:
    """Equal instruction-set bounds give equal bits, other bounds other bits; a run may resume with any bound."""
    folders = [mode("fp32", "avx2").folder, mode("fp32", "avx2", 2).folder, mode("fp32", "auto").folder]
    one, two, other = (load_file(folder / "train" / "model" / "model.safetensors") for folder in folders)
    checkpoints = [path for folder in folders for path in folder.glob("train/checkpoints/*/manifest.json")]
    assert all(two[name].equal(tensor) for name, tensor in one.items())
    assert any(not other[name].equal(tensor) for name, tensor in one.items())
    assert len({json.loads(path.read_text())["fingerprint"] for path in checkpoints}) == 1
