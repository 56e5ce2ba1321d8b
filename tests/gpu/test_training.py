"""Training on a GPU: the losses that a CPU has, and the same bits again. `make test-gpu`, where torch sees one."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Prepared
from tests.golden.test_training import EXACT, RECORDED, check_masks, check_order, steps
from tests.golden.training.settings import LONG, SETTINGS, SHORT, train

from bertwright.core.artifact import Artifact
from bertwright.core.files import sha256
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.precision.units import of_gpu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
    # What torch warns of differs by GPU and version: these tests ask for numbers.
    pytest.mark.filterwarnings("default::UserWarning:torch.*"),
]
ONE_PROCESS = [name for name, settings in SETTINGS.items() if settings.get("ranks", 1) == 1]
WITHOUT_CHANCE = [name for name in ONE_PROCESS if not SETTINGS[name].get("attention_dropout")]
FP16: dict[str, Any] = {"kind": "fp16", "initial_scale": 2.0**24, "growth_interval": 4}
"""A scale at which the first gradients overflow."""


def trained(name: str, prepared: Prepared, out: Path, **training: Any) -> Artifact:
    # float32, the precision of the CPU's trainings that these are compared with.
    training = {"deterministic": True, "precision": "fp32", "attention": "padded", **training}
    return train(name, prepared.examples, prepared.vocab, out, device="cuda", **training)


def rows(done: Artifact) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]


def weights(done: Artifact) -> str:
    return sha256(done.path / "model" / "model.safetensors")


@pytest.mark.parametrize("name", ONE_PROCESS)
def test_without_dropout_losses_are_those_of_a_cpu(name: str, prepared: Prepared, tmp_path: Path) -> None:
    on_gpu = trained(name, prepared, tmp_path / "gpu", drops=False)
    on_cpu = train(name, prepared.examples, prepared.vocab, tmp_path / "cpu", drops=False, precision="fp32")
    check_order(steps(on_gpu), steps(on_cpu))


@pytest.mark.parametrize("name", ONE_PROCESS)
def test_with_dropout_batches_are_those_of_a_cpu(name: str, prepared: Prepared, tmp_path: Path) -> None:
    recorded = json.loads((RECORDED / f"{name}.json").read_text())["steps"]
    check_masks(name, steps(trained(name, prepared, tmp_path / name)), recorded)


@pytest.mark.parametrize("name", ONE_PROCESS)
def test_the_same_training_gives_the_same_bits(name: str, prepared: Prepared, tmp_path: Path) -> None:
    one, other = (trained(name, prepared, tmp_path / folder) for folder in ("one", "other"))
    assert weights(one) == weights(other) and steps(one) == steps(other)


@pytest.mark.parametrize("precision", ["fp32", "bf16", FP16], ids=["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("name", ["adamw-sequences", "lamb-accumulation"])
def test_training_that_goes_on_from_a_checkpoint_ends_the_same(
    name: str, precision: Any, prepared: Prepared, tmp_path: Path
) -> None:
    """The loss scale of float16 too, which falls in the first steps."""
    whole, cut = (
        trained(name, prepared, tmp_path / folder, checkpoint_every=5, precision=precision)
        for folder in ("whole", "cut")
    )
    for late in sorted((cut.path / "checkpoints").glob("step-*"))[1:]:
        late.rename(tmp_path / late.name)
    (cut.path / "manifest.json").unlink()
    (cut.path / "model").rename(tmp_path / "its model")
    done = trained(name, prepared, tmp_path / "cut", checkpoint_every=5, precision=precision)
    assert weights(done) == weights(whole) and steps(done) == steps(whole)
    assert [row.get("loss_scale") for row in rows(done)] == [row.get("loss_scale") for row in rows(whole)]


def test_an_overflow_drops_the_update_halves_the_scale_and_training_goes_on(prepared: Prepared, tmp_path: Path) -> None:
    done = trained("lamb-sequences", prepared, tmp_path / "low", precision=FP16)
    scale, held, dropped = FP16["initial_scale"], 0, 0
    for row in rows(done):
        held = 0 if row["skipped"] else held + 1
        if row["skipped"]:
            scale, dropped = scale / 2, dropped + 1
        elif held == FP16["growth_interval"]:
            scale, held = scale * 2, 0
        assert row["loss_scale"] == scale, row["step"]
        # A dropped step counts for the data alone; every phase counts its updates from 0.
        assert row["optimizer_step"] == row["step"] - dropped or row["phase"] == 1
    assert rows(done)[0]["skipped"] and 0 < dropped < SHORT["steps"]
    losses = [row["mlm_loss"] for row in rows(done) if not row["skipped"]]
    full = [row["mlm_loss"] for row in rows(trained("lamb-sequences", prepared, tmp_path / "full"))]
    assert losses[0] == pytest.approx(full[0], rel=0.05), "the first update comes late and finds the first weights"
    assert losses[-1] < losses[0]


def test_a_gpu_is_measured_and_profiled_and_trains_the_same(prepared: Prepared, tmp_path: Path) -> None:
    plain = trained(ONE_PROCESS[0], prepared, tmp_path / "plain")
    profiled = trained(ONE_PROCESS[0], prepared, tmp_path / "profiled", profile=2)
    assert weights(profiled) == weights(plain)
    measured = rows(profiled)
    assert all(row["tflops_per_second"] > 0 and row["floor_ratio"] > 1 for row in measured)
    assert 0 < measured[-1]["memory_bytes"] <= torch.cuda.max_memory_reserved()
    table = (profiled.path / "profile" / "table.txt").read_text()
    assert table.startswith("2 steps, ") and "matrix products" in table


def test_the_units_of_this_gpu_choose_the_precision(prepared: Prepared, tmp_path: Path) -> None:
    expected = of_gpu(None if torch.version.hip else torch.cuda.get_device_capability(), "auto")
    (session,) = trained(ONE_PROCESS[0], prepared, tmp_path / "auto", precision="auto").counts["sessions"]
    assert (session["precision"], session["precision_reason"]) == (expected.config.kind, expected.reason)


def test_the_kernels_of_this_gpu_are_timed(prepared: Prepared, tmp_path: Path) -> None:
    """None of them may fail."""
    chosen = trained(
        WITHOUT_CHANCE[0], prepared, tmp_path / "auto", precision="bf16", attention="auto", deterministic=False
    )
    (session,) = chosen.counts["sessions"]
    assert " a layer, " in session["attention_reason"] and "fails" not in session["attention_reason"]


@pytest.mark.parametrize("name", WITHOUT_CHANCE[:1])
def test_checkpointed_activations_give_the_same_bits(name: str, prepared: Prepared, tmp_path: Path) -> None:
    one, other = (
        trained(name, prepared, tmp_path / str(again), checkpoint_activations=again) for again in (False, True)
    )
    assert weights(one) == weights(other)


@pytest.mark.parametrize("cuda_graphs", [False, True], ids=["launched", "replayed"])
@pytest.mark.parametrize("name", ["adamw-packing", "lamb-padded"])
def test_compiled_it_learns_as_it_is_written(name: str, cuda_graphs: bool, prepared: Prepared, tmp_path: Path) -> None:
    """Several micro-batches a step, and two phases, so that graphs of several shapes are recorded and replayed."""
    graph = {"kind": "compiled", "cuda_graphs": cuda_graphs}
    settings = {"attention": "padded", "deterministic": False}
    eager = trained(name, prepared, tmp_path / "eager", **settings)
    compiled = trained(name, prepared, tmp_path / "compiled", graph=graph, **settings)
    for one, other in zip(steps(eager), steps(compiled), strict=True):
        assert {key: one[key] for key in EXACT} == {key: other[key] for key in EXACT}
        assert other["mlm_loss"] == pytest.approx(one["mlm_loss"], rel=0.05), one["step"]


@pytest.mark.parametrize("name", ONE_PROCESS[:1])
@pytest.mark.parametrize(
    "precision",
    ["tf32", "bf16", {"kind": "bf16", "weights": "bf16"}],
    ids=["tf32", "bf16", "pure bf16"],
)
def test_low_precision_learns_as_float32_does(name: str, precision: Any, prepared: Prepared, tmp_path: Path) -> None:
    full, low = (
        trained(name, prepared, tmp_path / folder, precision=each)
        for folder, each in (("full", "fp32"), ("low", precision))
    )
    assert steps(full)[0]["mlm_loss"] != steps(low)[0]["mlm_loss"], "it computes in other numbers"
    for one, other in zip(steps(full), steps(low), strict=True):
        assert other["mlm_loss"] == pytest.approx(one["mlm_loss"], rel=0.03)


def test_out_of_memory_halves_the_micro_batch(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PreTraining.terms

    def terms(objective: PreTraining, model: torch.nn.Module, batch: Any) -> Any:
        if model.training and len(batch.sequence_weights) > 5:
            torch.empty(1 << 50, device="cuda")  # more than any GPU has: the allocator's own error
        return real(objective, model, batch)

    monkeypatch.setattr(PreTraining, "terms", terms)
    (name,) = WITHOUT_CHANCE[:1]
    phases = [{**phase, "micro_batch": "auto"} for phase in (SHORT, LONG)]
    done = trained(name, prepared, tmp_path / "full", phases=phases)
    assert [cut["micro_batch"] for cut in done.counts["sessions"][-1]["micro_batches"]] == [3, 3]
