"""Low precision: the losses of float32 nearly, the loss scale's rule, overflows, resuming, refusals."""

import json
import os
import signal
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.reference.batches import NUMBERS, random_batch
from tests.rows import each_row

from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.examples.batch import MicroBatch, batch_hash, split
from bertwright.examples.padding import with_room
from bertwright.model.batch import packed
from bertwright.model.config import BertConfig, Kernel
from bertwright.model.device import torch_settings
from bertwright.model.pretraining import PreTrainingModel
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.precision import precision as precisions
from bertwright.train.precision.config import Bf16Config, Bf32Config, Fp16Config, Fp32Config, Tf32Config
from bertwright.train.precision.loss_scale import LossScale, scale_after, scale_from
from bertwright.train.precision.precision import LowCopy, build_precision

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
CPU = torch.device("cpu")
BF16 = {"kind": "bf16", "allow_slow": True}
PURE = {"kind": "bf16", "weights": "bf16", "allow_slow": True}
"""Also the weights that compute."""
BF32 = pytest.param(
    {"kind": "bf32"},
    id="bf32",
    marks=pytest.mark.skipif(not precisions._rounds_factors(), reason="this processor rounds no factors (AMX)"),
)
FP16 = {"kind": "fp16", "allow_slow": True, "initial_scale": 2.0**20, "growth_interval": 3}
"""A scale at which the first gradients overflow."""


def rows(done: Artifact) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]


def weights(done: Artifact) -> dict[str, torch.Tensor]:
    return load_file(done.file("model/model.safetensors"))


class StopsAt:
    """A log that asks the process to stop after a number of rows."""

    def __init__(self, row: int) -> None:
        self.left = row

    def say(self, message: str) -> None: ...

    def progress(self, stage: str, done: float, total: float, unit: str) -> None: ...

    def record(self, row: dict[str, Any]) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    "precision",
    [
        pytest.param(BF16, id="bf16"),
        pytest.param({"kind": "fp16", "allow_slow": True}, id="fp16"),
        pytest.param(PURE, id="pure bf16"),
        BF32,
    ],
)
def test_losses_are_near_float32_and_weights_stay_float32(train: Train, precision: Any) -> None:
    full, low = train("full"), train("low", precision=precision)
    for one, other in zip(rows(full), rows(low), strict=True):
        assert other["mlm_loss"] == pytest.approx(one["mlm_loss"], rel=0.01)
        assert other["grad_norm"] == pytest.approx(one["grad_norm"], rel=0.1)
        assert other["batch"] == one["batch"], "padding counts for nothing"
    assert rows(full)[0]["mlm_loss"] != rows(low)[0]["mlm_loss"]
    assert {tensor.dtype for tensor in weights(low).values()} == {torch.float32}
    assert [entry["precision"] for entry in low.counts["sessions"]] == [precision["kind"]]


@pytest.mark.parametrize(
    "precision",
    [pytest.param(BF16, id="bf16"), pytest.param(FP16, id="fp16"), pytest.param(PURE, id="pure bf16"), BF32],
)
@pytest.mark.parametrize("row", [1, 4, 7])
def test_stopped_and_continued_it_ends_bit_identical(train: Train, precision: Any, row: int) -> None:
    undisturbed = train("undisturbed", precision=precision)
    with pytest.raises(Interrupted):
        train("disturbed", precision=precision, log=StopsAt(row))
    continued = train("disturbed", precision=precision)
    one, other = weights(undisturbed), weights(continued)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert rows(continued)[-1].get("loss_scale") == rows(undisturbed)[-1].get("loss_scale")


def test_pure_bfloat16_learns_like_autocast(train: Train, optim: Any) -> None:
    autocast, pure = train("autocast", optim=optim, precision=BF16), train("pure", optim=optim, precision=PURE)
    for one, other in zip(rows(autocast), rows(pure), strict=True):
        assert other["mlm_loss"] == pytest.approx(one["mlm_loss"], rel=0.02)
    assert rows(pure)[-1]["mlm_loss"] != rows(autocast)[-1]["mlm_loss"]
    assert [entry["weights"] for entry in pure.counts["sessions"]] == ["bf16"]


def test_pure_bfloat16_keeps_all_that_is_saved_in_float32(train: Train) -> None:
    done = train("pure", precision=PURE, averaging="ema", guard={"spike": 100.0, "window": 10})
    for path in [*done.path.glob("checkpoints/*/*.safetensors"), done.file("model/model.safetensors")]:
        kinds = {tensor.dtype for name, tensor in load_file(path).items() if name not in ("step", "updates")}
        assert kinds <= {torch.float32}, path
    (low,) = {float((t - t.bfloat16().float()).abs().max()) > 0 for n, t in weights(done).items() if "token" in n}
    assert low, "the master has more digits than what computes"


def test_a_run_goes_on_in_another_precision(train: Train) -> None:
    """Checkpoints are float32 whatever computes, so none asks which it was."""
    with pytest.raises(Interrupted):
        train("moved", precision=PURE, log=StopsAt(3))
    with pytest.raises(Interrupted):
        train("moved", precision=BF16, log=StopsAt(3))
    done = train("moved")
    assert [entry["weights"] for entry in done.counts["sessions"]] == ["bf16", "fp32", "fp32"]
    assert rows(done)[-1]["mlm_loss"] == pytest.approx(rows(train("full"))[-1]["mlm_loss"], rel=0.02)


def test_gradients_of_the_low_copy_are_summed_in_float32() -> None:
    torch.manual_seed(0)
    master, batches = PreTrainingModel(BertConfig(**NUMBERS)), [random_batch([9, 5], seed) for seed in (1, 2, 3)]
    low, expected = LowCopy(master, torch.bfloat16), dict[str, torch.Tensor]()
    objective = PreTraining(next_sentence=True)
    plain = deepcopy(master).to(torch.bfloat16)
    for batch in batches:
        for network in (low.refresh(), plain):
            sum(term.loss_sum for term in objective.terms(network, batch).values()).backward()  # type: ignore[union-attr]
        for name, p in plain.named_parameters():
            assert p.grad is not None and p.grad.dtype == torch.bfloat16
            expected[name] = expected.get(name, torch.zeros_like(p, dtype=torch.float32)) + p.grad.float()
            p.grad = None
    for name, p in master.named_parameters():
        assert p.grad is not None and torch.equal(p.grad, expected[name]), name
    assert all(p.grad is None for p in low.network.parameters()), "no second copy of the gradients is kept"
    with torch.no_grad():
        master.mlm.transform.weight.fill_(0.123456789)
    assert float(low.refresh().mlm.transform.weight[0, 0].detach()) == float(torch.tensor(0.123456789).bfloat16())


def test_an_overflow_drops_the_step_and_halves_the_scale(train: Train) -> None:
    done = train("low", precision=FP16)
    first = [row for row in rows(done) if row["phase"] == 0]
    dropped = sum(row["skipped"] for row in first)
    assert 0 < dropped < 8 and first[-1]["optimizer_step"] == first[-1]["step"] - dropped
    assert first[0]["loss_scale"] < 2.0**20


def test_a_scale_that_an_overflow_would_raise_is_refused() -> None:
    Fp16Config(initial_scale=4, min_scale=4)
    said = r"min_scale 8 is more than initial_scale 4, .*; lower min_scale, or raise initial_scale"
    with pytest.raises(RecipeError, match=said):
        Fp16Config(initial_scale=4, min_scale=8)


def test_the_scale_follows_the_rule() -> None:
    config = Fp16Config(initial_scale=8, growth_interval=2, min_scale=2)
    scale = scale_from(config, None)
    assert scale == LossScale(8.0)
    factors = []
    for finite in (True, True, False, False, False, False, True, True, True, True):
        scale = scale_after(config, scale, finite)
        assert scale is not None
        factors.append(scale.factor)
    assert factors == [8, 16, 8, 4, 2, 2, 2, 4, 4, 8]
    assert scale_from(config, LossScale(4.0, 1)) == LossScale(4.0, 1), "a checkpoint's is gone on with"
    assert scale_from(Fp32Config(), LossScale(4.0)) is None and scale_after(Fp32Config(), None, finite=True) is None
    assert scale_after(config, LossScale(2.0**31, 1), finite=True) == LossScale(2.0**31)


@each_row(
    ("finite", "expected"),
    [
        # An overflow after two updates: from then on three more are needed, not one.
        ("++-+++", [(8, 1), (8, 2), (4, 0), (4, 1), (4, 2), (8, 0)]),
        ("++++++", [(8, 1), (8, 2), (16, 0), (16, 1), (16, 2), (32, 0)]),
        ("--+--+", [(4, 0), (2, 0), (2, 1), (2, 0), (2, 0), (2, 1)]),
    ],
)
def test_updates_are_counted_from_the_last_change_or_overflow(finite: str, expected: list[tuple[float, int]]) -> None:
    config = Fp16Config(initial_scale=8, growth_interval=3, min_scale=2)
    scale, found = scale_from(config, None), []
    for each in finite:
        scale = scale_after(config, scale, each == "+")
        assert scale is not None
        found.append((scale.factor, scale.applied))
    assert found == expected


def test_what_the_machine_cannot_do_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecipeError, match=r"tf32, but a CPU has no tensor cores .* Set train\.precision"):
        build_precision(Tf32Config(), CPU)
    monkeypatch.setattr(precisions, "has_bf16", lambda: False)
    with pytest.raises(RecipeError, match=r"bf16, but this CPU has no unit .* ten times .*allow_slow=true"):
        build_precision(Bf16Config(), CPU)
    build_precision(Bf16Config(allow_slow=True), CPU)
    with pytest.raises(RecipeError, match=r"bf16, but this CPU has no unit"):
        build_precision(Bf16Config(weights="bf16"), CPU)
    monkeypatch.setattr(precisions, "_rounds_factors", lambda: False)
    with pytest.raises(RecipeError, match=r"bf32, but this CPU has no unit .*AMX.*precision=fp32"):
        build_precision(Bf32Config(), CPU)


@each_row("kernel", ["sequences", "padded"])
@each_row("room", [(0, 0), (0, 3), (17, 0), (300, 56)])
def test_padding_changes_neither_hash_nor_score(kernel: Kernel, room: tuple[int, int]) -> None:
    batch = random_batch([9, 5, 12, 5]).map(lambda tensor: tensor.numpy())
    _, tokens, predictions = batch.counts
    padded: MicroBatch = with_room(batch, tokens + room[0], predictions + room[1])
    assert padded.counts[1:] == (tokens + room[0], predictions + room[1])
    assert batch_hash(padded) == batch_hash(batch)
    torch.manual_seed(0)
    model = PreTrainingModel(BertConfig(**NUMBERS), kernel).double()
    objective = PreTraining(next_sentence=True)
    one, other = (score(objective, model, [packed(each)]) for each in (batch, padded))
    assert other == pytest.approx(one, abs=1e-6)


def test_an_empty_batch_with_room_has_a_row_as_long() -> None:
    batch = random_batch([9]).map(lambda tensor: tensor.numpy())
    empty = split(batch, [np.array([1]), np.array([], np.int64)])[1]
    assert empty.counts.sequences == empty.max_row == 0
    padded = with_room(empty, 1, 1)
    assert padded.max_row == 1 and padded.cu_rows.tolist() == [0, 1] and not padded.weights.any()


def test_only_low_precision_on_a_processor_is_padded() -> None:
    batch = random_batch([9, 5]).map(lambda tensor: tensor.numpy())
    assert build_precision(Fp32Config(), CPU).fit(batch) is batch
    low = replace(build_precision(Bf16Config(allow_slow=True), CPU)).fit(batch)
    assert low.counts == (2 + 27, 256, 64)
    assert low.max_row == 9, "padding makes no rectangle wider"


@pytest.mark.skipif(not precisions._rounds_factors(), reason="this processor rounds no factors (AMX)")
def test_bf32_rounds_factors_and_sums_in_float32() -> None:
    """Against float64 products of factors that are rounded by hand, forward and backward."""
    torch.manual_seed(0)
    x, w, upstream = torch.randn(256, 128), torch.randn(64, 128), torch.randn(256, 64)
    rounded = [tensor.bfloat16().double() for tensor in (x, w, upstream)]
    x.requires_grad_(), w.requires_grad_()
    with torch_settings(1, keep_kernels=True, products="medium"):
        y = torch.nn.functional.linear(x, w)
        y.backward(upstream)
    assert x.grad is not None and w.grad is not None and y.dtype == torch.float32
    expected = (rounded[0] @ rounded[1].T, rounded[2] @ rounded[1], rounded[2].T @ rounded[0])
    for computed, exact in zip((y.detach(), x.grad, w.grad), expected, strict=True):
        assert float((computed.double() - exact).abs().max()) < 1e-4
    assert float((y.detach().double() - x.detach().double() @ w.detach().double().T).abs().max()) > 1e-2


def test_a_scale_that_no_growth_would_reach_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"initial_scale: 4294967296\.0 must be 2\.14748e\+09 or less"):
        Fp16Config(initial_scale=2.0**32)
    assert Fp16Config(initial_scale=2.0**31).initial_scale == 2.0**31


def test_what_a_precision_does_not_need_is_not_asked_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older torch, as ONNX Runtime's, cannot tell its units."""
    monkeypatch.setattr(precisions, "has_bf16", None)
    monkeypatch.setattr(precisions, "_rounds_factors", None)
    assert build_precision(Fp32Config(), torch.device("cpu")).weights is None
