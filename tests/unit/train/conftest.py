"""A training run small enough for a unit test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Prepared

from bertwright.core.artifact import Artifact
from bertwright.model.config import ModelConfig
from bertwright.optim.config import AdamWConfig, LambConfig
from bertwright.train.config import TrainConfig
from bertwright.train.run import run

MODEL = {
    "vocab_size": 200, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 32, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
PHASES: list[dict[str, Any]] = [
    {"length": 16, "batch": 8, "micro_batch": 4, "learning_rate": 1e-2, "steps": 12},
    {"length": 32, "batch": 4, "learning_rate": 5e-3, "steps": 6, "schedule": "poly"},
]


@pytest.fixture
def train(prepared: Prepared, tmp_path: Path) -> Callable[..., Artifact]:
    """`train(name, optim=..., **train settings)`: trains into `tmp_path / name`."""
    import json

    config_file = tmp_path / "bert.json"
    config_file.write_text(json.dumps(MODEL))

    def start(name: str = "train", optim: Any = None, log: Any = None, **settings: Any) -> Artifact:
        values = {
            "phases": PHASES,
            "heldout_sequences": 32,
            "checkpoint_every": 4,
            "evaluate_every": 6,
            "log_every": 2,
            **settings,
        }
        extra = {} if log is None else {"log": log}
        return run(
            TrainConfig.model_validate(values),
            ModelConfig(config=config_file),
            optim or AdamWConfig(),
            prepared.examples,
            prepared.vocab,
            tmp_path / name,
            **extra,
        )

    return start


@pytest.fixture(params=[AdamWConfig(), LambConfig()], ids=["adamw", "lamb"])
def optim(request: pytest.FixtureRequest) -> Any:
    return request.param
