"""The modes of Intel's scripts as commands, each in a process of its own: what it computed with stands in its facts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.pipeline.command import bertwright

from bertwright.train.instructions import lacking

STEPS = ("train.phases.0.steps=12", "train.phases.1.steps=4", "train.phases.1.schedule=constant", "train.device=cpu")


def trained(recipe: Path, folder: Path, *keys: str) -> tuple[dict[str, Any], str]:
    """The facts of the only start, and what it said."""
    done = bertwright("train", recipe, *STEPS, *keys, "--out", folder)
    assert done.code == 0, done.err
    (facts,) = json.loads((folder / "train" / "manifest.json").read_text())["counts"]["sessions"]
    return facts, done.err


@pytest.mark.parametrize(
    ("precision", "isa"),
    [("fp32", "avx512"), ("fp32", "amx"), ("bf16", "amx"), ("bf32", "amx"), ("fp32", "avx2")],
    ids=["avx-fp32", "fp32", "bf16", "bf32", "avx2"],
)
def test_each_mode_trains_with_what_it_names(
    precision: str, isa: str, small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    if reason := lacking(isa):
        pytest.skip(reason)
    keys = (f"train.precision={precision}", f"train.cpu_isa={isa}")
    facts, said = trained(small_recipe, small_examples(tmp_path / "run"), *keys)
    assert (facts["precision"], facts["isa"]) == (precision, isa)
    assert facts["machine"].endswith("AVX2" if isa == "avx2" else "AVX512")
    assert f"train: instructions up to {isa} (train.cpu_isa)" in said


@pytest.mark.skipif(bool(lacking("avx512")), reason="a bound on this processor would bound nothing")
def test_the_bits_follow_from_the_instructions(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The same bound gives the same bits, another gives others, and a run may go on with any."""
    folders = {name: small_examples(tmp_path / name) for name in ("one", "two", "other")}
    for name, isa in (("one", "avx2"), ("two", "avx2"), ("other", "auto")):
        trained(small_recipe, folders[name], f"train.cpu_isa={isa}")
    models = {name: load_file(folder / "train" / "model" / "model.safetensors") for name, folder in folders.items()}
    checkpoints = [path for folder in folders.values() for path in folder.glob("train/checkpoints/*/manifest.json")]
    assert all(models["two"][name].equal(tensor) for name, tensor in models["one"].items())
    assert any(not models["other"][name].equal(tensor) for name, tensor in models["one"].items())
    assert len({json.loads(path.read_text())["fingerprint"] for path in checkpoints}) == 1
