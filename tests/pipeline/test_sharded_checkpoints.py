"""Checkpoints written by all ranks: a rank killed while writing, with every engine; inspecting and mirroring them."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import Prepared
from tests.pipeline.engines import section
from tests.pipeline.ranks_of import Training, start_ranks, train_on
from tests.processes import PATIENCE

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.train.checkpoints.tensor_files import read_all

SHARDS = {"shard_above_gb": 0, "timeout": 20}


@dataclass(frozen=True)
class Killed:
    """A training whose rank 1 is killed after writing half of its third checkpoint."""

    training: Training

    def run(self, examples: Path, vocab: Path, folder: Path) -> Artifact | None:
        from bertwright.train.checkpoints import checkpoint

        write, written = checkpoint.write_tensors, []

        def killing(draft: Path, name: str, *arguments: Any) -> None:
            write(draft, name, *arguments)
            written.append(draft)
            if os.environ["RANK"] == "1" and len(written) == 5:
                os.kill(os.getpid(), signal.SIGKILL)

        checkpoint.write_tensors = killing
        try:
            return self.training.run(examples, vocab, folder)
        finally:
            checkpoint.write_tensors = write


@pytest.mark.parametrize(
    ("engine", "beside"),
    [
        ("fsdp", True),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("fsdp", False), ("zero", True), ("ddp", True))),
        pytest.param("deepspeed-3", True, marks=(pytest.mark.slow, pytest.mark.deepspeed)),
    ],
)
def test_a_rank_that_is_killed_while_it_writes_leaves_the_checkpoint_before(
    engine: str, beside: bool, prepared: Prepared, tmp_path: Path
) -> None:
    """One fast case; the other engines, and saving without a thread, are slow."""
    places = prepared.examples.path, prepared.vocab.path
    train = {"engine": section(engine), "save_async": beside, "checkpoint_every": 3}
    train_on(2, [Training("undisturbed", {**train, "shard_above_gb": 5})], *places, tmp_path / "whole")
    training = Training("run", {**train, **SHARDS})
    ranks = start_ranks(2, [Killed(training)], *places, tmp_path / "sharded")  # type: ignore[list-item]
    for rank in ranks:
        rank.join(PATIENCE)
    assert ranks[1].exitcode == -signal.SIGKILL and ranks[0].exitcode not in (0, None)
    folder = tmp_path / "sharded" / "run"
    assert max(path.name for path in (folder / "checkpoints").glob("step-*")) == "step-000000006"
    assert [*(folder / "checkpoints").glob(".step-000000009.draft")], "it was killed in the middle of it"

    train_on(2, [training], *places, tmp_path / "sharded")
    undisturbed = tmp_path / "whole" / "undisturbed"
    ours, theirs = (load_file(path / "model" / "model.safetensors") for path in (folder, undisturbed))
    assert ours.keys() == theirs.keys() and all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    last = max((folder / "checkpoints").glob("step-*"))
    checkpoint, whole = open_artifact(last), open_artifact(undisturbed / "checkpoints" / last.name)
    assert len(checkpoint.names("model-")) == len(checkpoint.names("optimizer-")) == 2
    for name in ("model", "optimizer"):
        tensors, expected = read_all(checkpoint, name), read_all(whole, name)
        assert tensors.keys() == expected.keys()
        assert all(torch.equal(tensor, expected[key]) for key, tensor in tensors.items())
    if engine == "zero":  # each rank writes its own moments: no tensor is in two files, and both have some
        sizes = [(last / name).stat().st_size for name in checkpoint.names("optimizer-")]
        assert max(sizes) < 0.7 * sum(sizes)
