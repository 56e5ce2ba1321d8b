"""Every engine on one to four ranks trains like one process, and resumes from the checkpoint of any other."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file, save_file
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on
from tests.reference.batches import random_batch

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import MuonConfig
from bertwright.train.engine.config import EngineConfig
from bertwright.train.engine.engine import build_engine
from bertwright.train.ranks.process_group import process_group

ENGINES = ("ddp", "zero", "fsdp")
OPTIMIZERS = ("adamw", "lamb", "muon")
KERNELS = ("sequences", "padded")
MEASURED = ("mlm_loss", "nsp_loss", "grad_norm", "heldout_mlm_loss", "heldout_nsp_loss")


def training(engine: str, optim: str, kernel: str) -> Training:
    return Training(f"{engine}-{optim}-{kernel}", {"engine": engine, "attention": kernel}, {"kind": optim})


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def alone(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trainings in one process, by the names in `single`."""
    folder = tmp_path_factory.mktemp("alone")
    every = [training("single", optim, kernel) for optim, kernel in product(OPTIMIZERS, KERNELS)]
    train_on(1, every, prepared.examples.path, prepared.vocab.path, folder)
    return folder


@pytest.mark.parametrize(
    ("world", "optimizers", "kernels"),
    [
        (2, OPTIMIZERS, KERNELS[:1]),
        (3, ("muon",), KERNELS[1:]),
        (4, ("lamb",), KERNELS[:1]),
        *(pytest.param(world, OPTIMIZERS, KERNELS, marks=pytest.mark.slow) for world in (2, 3, 4)),
    ],
)
def test_every_engine_trains_as_one_process(
    world: int, optimizers: Sequence[str], kernels: Sequence[str], prepared: Prepared, tmp_path: Path, alone: Path
) -> None:
    every = list(product(ENGINES, optimizers, kernels))
    train_on(world, [training(*each) for each in every], prepared.examples.path, prepared.vocab.path, tmp_path / "r")
    for engine, optim, kernel in every:
        assert_same(tmp_path / "r" / f"{engine}-{optim}-{kernel}", alone / f"single-{optim}-{kernel}")


def assert_same(folder: Path, expected: Path, rel: float = 1e-6, steps: int = 20) -> None:
    """Assert the same batches, and losses, norms and weights equal up to a different order of summation."""
    ours, theirs = rows(folder), rows(expected)
    assert [row["batch"] for row in ours] == [row["batch"] for row in theirs] and len(ours) == steps
    for row, other in zip(ours, theirs, strict=True):
        measured = row.keys() & set(MEASURED)
        assert measured == other.keys() & set(MEASURED), (folder.name, row["step"])
        for key in measured:
            assert row[key] == pytest.approx(other[key], rel=rel), (folder.name, key, row["step"])


@dataclass(frozen=True)
class Updates:
    """Three updates of a ModernBERT with Muon, whose result rank 0 writes to a file of this name."""

    name: str

    def run(self, examples: Path, vocab: Path, folder: Path) -> Artifact | None:
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        model = PreTrainingModel(ModernModelConfig(size="tiny").resolve(61))
        optim = MuonConfig(max_grad_norm=0.0)
        with process_group(600.0, 600.0, 600.0) as ranks:
            config: EngineConfig = TypeAdapter(EngineConfig).validate_python(self.name)
            engine = build_engine(config, model, optim, ranks)
            for step in range(3):
                model.zero_grad()
                for rank in range(2):
                    if ranks.world == 1 or rank == ranks.rank:
                        mlm_PV, _ = model(random_batch([9, 5], 2 * step + rank))
                        engine.root(mlm_PV.logsumexp(-1).sum(), last=ranks.world > 1 or rank == 1).backward()
                engine.reduce()
                engine.update(1e-2)
            weights, _ = engine.gather()
            if ranks.first:
                save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / self.name)
        return None


def test_muon_cuts_stacked_matrices_apart_where_ranks_hold_parts_of_them(prepared: Prepared, tmp_path: Path) -> None:
    """Of two ranks, the border of `fsdp` is in the middle of the keys."""
    places = prepared.examples.path, prepared.vocab.path
    train_on(1, [Updates("single")], *places, tmp_path / "alone")  # type: ignore[list-item]
    train_on(2, [Updates(engine) for engine in ENGINES], *places, tmp_path / "ranks")  # type: ignore[misc]
    alone = load_file(tmp_path / "alone" / "single")
    for engine in ENGINES:
        for name, tensor in load_file(tmp_path / "ranks" / engine).items():
            torch.testing.assert_close(tensor, alone[name], rtol=0, atol=2e-5, msg=f"{engine}: {name}")


@pytest.mark.parametrize("shard_above_gb", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_a_run_goes_on_with_any_engine_and_any_number_of_ranks(
    shard_above_gb: int, prepared: Prepared, tmp_path: Path, alone: Path
) -> None:
    """From the checkpoint files of all ranks; those of rank 0 are slow."""
    for world, engine, steps in [(4, "zero", 4), (2, "fsdp", 7), (1, "single", 4), (3, "ddp", 0)]:
        part = Training("travelled", {"engine": engine, "shard_above_gb": shard_above_gb}, {"kind": "lamb"}, steps)
        train_on(world, [part], prepared.examples.path, prepared.vocab.path, tmp_path / "t")
    assert_same(tmp_path / "t" / "travelled", alone / "single-lamb-sequences", rel=1e-4)
    sessions = open_artifact(tmp_path / "t" / "travelled", "train").counts["sessions"]
    assert [(entry["ranks"], entry["engine"]) for entry in sessions] == [
        (4, "zero"),
        (2, "fsdp"),
        (1, "single"),
        (3, "ddp"),
    ]
    ours, theirs = (
        load_file(path / "model" / "model.safetensors")
        for path in (tmp_path / "t" / "travelled", alone / "single-lamb-sequences")
    )
    for name, tensor in theirs.items():
        torch.testing.assert_close(ours[name], tensor, rtol=1e-3, atol=1e-5)
