"""Twenty steps of seven trainings: their batches to the bit, their losses and norms as they were recorded.

On the kind of machine that recorded them losses, norms and final weights are equal to the last bit; elsewhere the
processor adds in another order, and they agree to a hundred-thousandth. `BERTWRIGHT_WRITE_GOLDEN=1 pytest tests/golden`
records them anew, which is right only where a change of the numbers is meant.
"""

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import Prepared
from tests.golden.training.settings import SETTINGS, train, train_as_rank
from tests.pipeline.command import context
from tests.pipeline.ranks_of import free_ports

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.files import sha256
from bertwright.model.dropout import seed_dropout
from bertwright.train import step as train_step

RECORDED = Path(__file__).parent / "training"
EXACT = ("phase", "step", "optimizer_step", "skipped", "learning_rate", "tokens_seen", "batch")
MEASURED = ("mlm_loss", "nsp_loss", "grad_norm", "heldout_mlm_loss", "heldout_nsp_loss")


TOLERANCE = 1e-5
"""Relative, of losses and norms. Processors that add in another order differ by 2e-7 after twenty steps; GELU in its
tanh approximation changes the losses of the training with large weights by 6e-5 from the first step on."""


@pytest.fixture(scope="module", params=SETTINGS)
def both(
    request: pytest.FixtureRequest, prepared: Prepared, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a training gives now, and what was recorded of it."""
    name = request.param
    done = trained(name, prepared, tmp_path_factory.mktemp("golden") / name)
    now = {
        "machine": machine(),
        "steps": steps(done),
        "weights": sha256(done.path / "model" / "model.safetensors"),
        "tensors": {key: list(tensor.shape) for key, tensor in load_file(model_file(done)).items()},
    }
    file = RECORDED / f"{name}.json"
    if os.environ.get("BERTWRIGHT_WRITE_GOLDEN"):
        file.write_text(json.dumps(now, indent=1) + "\n")
    return now, json.loads(file.read_text())


def test_twenty_steps_are_those_that_were_recorded(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    now, recorded = both
    assert now["tensors"] == recorded["tensors"]
    for step, expected in zip(now["steps"], recorded["steps"], strict=True):
        assert {key: step[key] for key in EXACT} == {key: expected[key] for key in EXACT}
        assert step.keys() == expected.keys()
        for key in step.keys() & set(MEASURED):
            assert step[key] == pytest.approx(expected[key], rel=TOLERANCE), (key, expected["step"])


def test_they_are_equal_to_the_bit_where_they_were_recorded(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    now, recorded = both
    if now["machine"] != recorded["machine"]:
        pytest.skip("recorded with another processor or torch, which adds in another order")
    assert now == recorded


def check_order(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Without dropout only the order of summation may differ, as between kernels or devices: losses and norms agree to
    a ten-thousandth. Two kernels of a CPU agree to 2e-7 after twenty steps; bfloat16 would be off by up to 2e-3."""
    for step, other in zip(found, expected, strict=True):
        assert {key: step[key] for key in EXACT} == {key: other[key] for key in EXACT}
        assert step["mlm_loss"] == pytest.approx(other["mlm_loss"], rel=1e-4), other["step"]
        assert step["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-3), other["step"]


MEAN_SPREAD = {"adamw-large-weights": 0.0126}
"""Standard deviation of the mean loss of twenty steps over 64 seeds of dropout on a CPU, relative; of the others at
most 0.0023. The loss of a single step differs with large weights by up to 10 % in the second, and 26 % later."""


def check_masks(name: str, found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """With other masks of dropout, those of another generator, batches are the same, and the mean loss is that of
    another seed."""
    for step, other in zip(found, expected, strict=True):
        assert {key: step[key] for key in EXACT} == {key: other[key] for key in EXACT}
    mean, usual = (sum(step["mlm_loss"] for step in each) / len(each) for each in (found, expected))
    assert mean == pytest.approx(usual, rel=8 * MEAN_SPREAD.get(name, 0.0023))


def test_another_kernel_has_the_losses_if_nothing_is_dropped(prepared: Prepared, tmp_path: Path) -> None:
    name = "adamw-large-weights"
    exact, padded, low = (
        steps(train(name, prepared.examples, prepared.vocab, tmp_path / folder, drops=False, **settings))
        for folder, settings in (
            ("exact", {"precision": "fp32"}),
            ("padded", {"precision": "fp32", "attention": "padded"}),
            ("low", {"precision": {"kind": "bf16", "allow_slow": True}}),
        )
    )
    check_order(padded, exact)
    with pytest.raises(AssertionError):
        check_order(low, exact)


@pytest.mark.parametrize("name", ["adamw-large-weights", "lamb-padded"])
def test_other_dropout_masks_leave_the_mean_loss(
    name: str, prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = json.loads((RECORDED / f"{name}.json").read_text())["steps"]
    for seed in (1, 2):
        monkeypatch.setattr(train_step, "seed_dropout", lambda device, key, seed=seed: seed_dropout(device, key ^ seed))
        other = steps(train(name, prepared.examples, prepared.vocab, tmp_path / str(seed)))
        assert other[0]["mlm_loss"] != pytest.approx(recorded[0]["mlm_loss"], rel=1e-6)
        check_masks(name, other, recorded)


def trained(name: str, prepared: Prepared, out: Path) -> Artifact:
    """The training `name`, in this process or as one process a rank."""
    ranks = SETTINGS[name].get("ranks", 1)
    if ranks == 1:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return train(name, prepared.examples, prepared.vocab, out)
        finally:
            torch.set_num_threads(threads)
    common = {
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_ports(1)[0],
    }
    inputs = name, prepared.examples.path, prepared.vocab.path, out
    begun = [
        context().Process(target=train_as_rank, args=(*inputs, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}))
        for rank in range(ranks)
    ]
    for process in begun:
        process.start()
    for process in begun:
        process.join()
    assert [process.exitcode for process in begun] == [0] * ranks
    return open_artifact(out, "train")


def steps(done: Artifact) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    return [{key: row[key] for key in (*EXACT, *MEASURED) if key in row} for row in rows]


def model_file(done: Artifact) -> Path:
    return done.file("model/model.safetensors")


def machine() -> str:
    """What the order of summation depends on: the processor with its instruction sets, and torch."""
    facts = [str(torch.__version__), torch.backends.cpu.get_cpu_capability(), platform.machine()]
    lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if Path("/proc/cpuinfo").exists() else []
    kinds = ("vendor_id", "cpu family", "model", "flags")
    facts += [line for line in lines if line.partition("\t")[0] in kinds]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
