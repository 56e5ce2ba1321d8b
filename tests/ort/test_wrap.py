"""The one line for training loops of others, in the environment of `make ort-env`: `make test-ort`."""

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bertwright import wrap_graph
from bertwright.train.graph.packages import missing_ortmodule

pytestmark = pytest.mark.skipif(
    bool(missing_ortmodule()), reason="needs the environment of make ort-env: make test-ort"
)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.output = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(torch.tanh(self.inner(x)))


def losses(model: nn.Module) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for step in range(5):
        x = torch.randn(16, 4, generator=torch.Generator().manual_seed(step))
        loss = (model(x) - x.sum(-1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_a_plain_loop_has_the_same_losses() -> None:
    model = Small()
    wrapped = wrap_graph(model, "ortmodule")
    assert losses(wrapped) == pytest.approx(losses(Small()), rel=1e-5)
    assert wrapped.state_dict().keys() == model.state_dict().keys()
    assert all(a is b for a, b in zip(model.parameters(), wrapped.parameters(), strict=True))


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvalsh(x * self.weight[0]).sum()


def test_what_cannot_be_exported_is_an_error_and_not_run_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTMODULE_FALLBACK_POLICY", "FALLBACK_FORCE_TORCH_FORWARD")
    wrapped = wrap_graph(Branching(), "ortmodule")
    assert os.environ["ORTMODULE_FALLBACK_POLICY"] == "FALLBACK_FORCE_TORCH_FORWARD"
    with pytest.raises(Exception, match="(?i)export"):
        wrapped(torch.eye(3))


def test_the_trainer_of_transformers_has_the_same_losses(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: make ort-env")
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 40, (64, 16), generator=generator)
    data = [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row} for row in ids]

    def trained(kind: str) -> list[float]:
        torch.manual_seed(0)
        model = transformers.BertForMaskedLM(config)
        settings = transformers.TrainingArguments(
            output_dir=str(tmp_path / kind), max_steps=8, per_device_train_batch_size=8, logging_steps=1,
            report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
            label_names=["labels"], remove_unused_columns=False,
        )  # fmt: skip
        trainer = transformers.Trainer(model=wrap_graph(model, kind), args=settings, train_dataset=data)
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    eager = trained("eager")
    assert len(eager) == 8 and trained("ortmodule") == pytest.approx(eager, rel=1e-4)
