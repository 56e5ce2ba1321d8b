"""transformers' Trainer with a network that `wrap_graph` has converted to another graph backend."""

from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters

from bertwright import wrap_graph
from bertwright.train.graph.graph import GraphKind


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_trainer_has_the_same_losses_with_a_compiled_network(tmp_path: Path) -> None:
    """`tests/ort` shows the same for ONNX Runtime."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    pytest.importorskip("accelerate", reason="the Trainer wants accelerate: pip install accelerate")
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    ids = torch.randint(0, 40, (64, 16), generator=torch.Generator().manual_seed(1))
    data = [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row} for row in ids]

    def trained(kind: GraphKind) -> list[float]:
        torch.manual_seed(0)
        model = transformers.BertForMaskedLM(config)
        settings = transformers.TrainingArguments(
            output_dir=str(tmp_path / kind), max_steps=8, per_device_train_batch_size=8, logging_steps=1,
            report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True, label_names=["labels"],
        )  # fmt: skip
        trainer = transformers.Trainer(model=wrap_graph(model, kind), args=settings, train_dataset=data)
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    eager = trained("eager")
    torch._dynamo.reset()
    counters.clear()
    assert len(eager) == 8 and trained("compiled") == pytest.approx(eager, rel=1e-4)
    assert counters["stats"]["unique_graphs"] >= 1, "or it was not compiled"
