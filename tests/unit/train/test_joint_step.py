"""Steps whose loss compares all sequences of the global batch: their gradients are those of one pass over all of it,
however it is divided into micro-batches and over ranks."""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.processes import PATIENCE
from tests.reference.batches import NUMBERS
from tests.rows import each_row

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.vectors import VectorModel
from bertwright.optim.config import AdamWConfig
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.embedding.objective import Contrast
from bertwright.train.engine.config import AutoConfig, DdpConfig, EngineConfig, FsdpConfig, ZeroConfig
from bertwright.train.engine.engine import build_engine
from bertwright.train.precision.config import Fp32Config
from bertwright.train.precision.precision import Precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepResult, StepSettings, train_step

PAIRS = 9
SETTINGS = EmbeddingConfig(temperature=0.1, symmetric=True, dimensions=(8, 16))


def pairs_of(numbers: Sequence[int], kind: torch.dtype = torch.float64) -> PackedBatch:
    """The pairs with these numbers as a batch; every third has a hard negative, and two pairs are of one group."""
    ids, labels, lengths = list[torch.Tensor](), list[tuple[int, int, int]](), list[int]()
    for number in numbers:
        for role in (1, 2, 3)[: 3 if number % 3 == 0 else 2]:
            random = torch.Generator().manual_seed(10 * number + role)
            length = 4 + (number + role) % 4
            ids.append(torch.randint(1, NUMBERS["vocab_size"], (length,), generator=random))
            labels.append((role, max(number, 1), 10 * number + role))
            lengths.append(length)
    bounds = torch.tensor([0, *lengths]).cumsum(0).int()
    none = torch.zeros(0, dtype=torch.int64)
    return PackedBatch(
        token_ids=torch.cat(ids),
        position_ids=torch.cat([torch.arange(length) for length in lengths]),
        segment_ids=torch.zeros(int(bounds[-1]), dtype=torch.int64),
        cu_seqlens=bounds,
        cu_rows=bounds,
        max_row=max(lengths),
        prediction_positions=none,
        labels=none,
        weights=torch.zeros(0),
        sequence_labels=torch.tensor(labels),
        sequence_weights=torch.ones(len(lengths)),
    )


def network(dropout: float = 0.0) -> VectorModel:
    torch.manual_seed(0)
    numbers = {**NUMBERS, "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    return VectorModel(BertConfig(**numbers, next_sentence=False, head="vector")).double().train()


def take(
    batches: Sequence[PackedBatch],
    ranks: Ranks | None = None,
    engine: EngineConfig | None = None,
    dropout: float = 0.0,
    rate: float = 0.0,
) -> tuple[StepResult, VectorModel, dict[str, torch.Tensor]]:
    """A step on these micro-batches: its result, the network, and the gradients by name if weights are not sharded."""
    model, ranks = network(dropout), ranks or Ranks()
    made = build_engine(engine or AutoConfig(), model, AdamWConfig(max_grad_norm=0.0), ranks)
    trainee = Trainee(model, Contrast(SETTINGS), made, ranks, Precision(Fp32Config(), torch.device("cpu")))
    result = train_step(trainee, batches, {"contrast": PAIRS}, StepSettings(rate, 1))
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return result, model, gradients


def direct() -> tuple[torch.Tensor, VectorModel]:
    """The loss of all pairs in one graph."""
    model = network()
    batch = pairs_of(range(PAIRS))
    term = Contrast(SETTINGS).compare(model(batch), batch.sequence_labels, batch.sequence_weights)["contrast"]
    loss = term.loss_sum / PAIRS
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), model


@pytest.mark.parametrize("size", [1, 3, PAIRS])
def test_gradients_are_those_of_the_whole_batch(size: int) -> None:
    batches = [pairs_of(range(first, min(first + size, PAIRS))) for first in range(0, PAIRS, size)]
    result, _, gradients = take(batches)
    loss, whole = direct()
    assert result.losses["contrast"] == pytest.approx(float(loss), rel=1e-12) and result.applied
    norm = torch.cat([p.grad.flatten() for p in whole.parameters() if p.grad is not None]).norm()
    assert result.grad_norm == pytest.approx(float(norm), rel=1e-12)
    for name, parameter in whole.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-9, atol=1e-14)


def test_both_passes_of_a_micro_batch_drop_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[torch.Tensor]()
    outputs = Contrast.outputs

    def keep(self: Contrast, model: Any, batch: PackedBatch) -> torch.Tensor:
        seen.append(outputs(self, model, batch))
        return seen[-1]

    monkeypatch.setattr(Contrast, "outputs", keep)
    take([pairs_of([0, 1]), pairs_of([2, 3]), pairs_of([4, 5])], dropout=0.3)
    first, *_ = seen
    assert len(seen) == 5, "the last micro-batch is computed once"
    assert torch.equal(seen[3], seen[0]) and torch.equal(seen[4], seen[1])
    assert [each.requires_grad for each in seen] == [False, False, True, True, True]
    assert not torch.equal(first, network().eval()(pairs_of([0, 1])))


ENGINES = [DdpConfig(), ZeroConfig(), FsdpConfig()]


# With sharded weights every rank has as many micro-batches (`Trainee.to_compute`).
@each_row(
    ("config", "uneven"), [(DdpConfig(), False), (DdpConfig(), True), (ZeroConfig(), True), (FsdpConfig(), False)]
)
def test_two_ranks_train_as_one(config: Any, uneven: bool, tmp_path: Path) -> None:
    result, model, _ = take([pairs_of(range(PAIRS))], rate=1e-3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.unit.train.test_joint_step"]
    children = [
        subprocess.Popen([*command, f"{rank}", f"{port}", config.kind, f"{int(uneven)}", f"{tmp_path / f'{rank}.pt'}"])
        for rank in range(2)
    ]
    assert [child.wait(PATIENCE) for child in children] == [0, 0]
    numbers = json.loads((tmp_path / "0.json").read_text())
    assert numbers["loss"] == pytest.approx(result.losses["contrast"], rel=1e-9)
    assert numbers["norm"] == pytest.approx(result.grad_norm, rel=1e-6)
    weights = torch.load(tmp_path / "0.pt", weights_only=True)
    for name, tensor in model.state_dict().items():
        # In the direction of a gradient of 0, rounding decides about AdamW's first update.
        close = torch.isclose(weights[name], tensor, rtol=1e-6, atol=1e-9).double().mean()
        assert float(close) > 0.99, name


def rank_main(rank: int, port: int, kind: str, uneven: bool, out: Path) -> None:
    """One of two ranks: takes a step on its pairs, and writes the result."""
    from datetime import timedelta

    from torch import distributed as dist

    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2, timeout=timedelta(seconds=PATIENCE)
    )

    class Plain(Ranks):
        """Ranks without a watchdog."""

        def _finish(self, work: Any, values: torch.Tensor) -> None:
            work.wait()

    shares = ([[0, 1, 2, 3], [4]], [[5, 6], [7, 8]])
    own = [list(range(PAIRS)), []][rank : rank + 1] if uneven else shares[rank]
    config = next(each for each in ENGINES if each.kind == kind)
    batches = [pairs_of(numbers) for numbers in own if numbers]
    result, model, _ = take(batches, Plain(rank, 2), config, rate=1e-3)
    weights = {
        name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        for name, tensor in model.state_dict().items()
    }
    if rank == 0:
        torch.save(weights, out)
        out.with_suffix(".json").write_text(json.dumps({"loss": result.losses["contrast"], "norm": result.grad_norm}))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    first, second, kind, third, fourth = sys.argv[1:]
    rank_main(int(first), int(second), kind, bool(int(third)), Path(fourth))
