"""A training run small enough for a unit test."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Prepared

from bertwright.core.artifact import Artifact
from bertwright.core.log import SILENT
from bertwright.core.stage_context import StageContext
from bertwright.model.bert.config import BertModelConfig
from bertwright.optim.config import AdamWConfig, LambConfig, MuonConfig
from bertwright.train.config import TrainConfig
from bertwright.train.run import run
from bertwright.train.settings.identity import Inputs, Settings

MODEL = {
    "vocab_size": 200, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 32, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
PHASES: list[dict[str, Any]] = [
    {"length": 16, "batch": 8, "micro_batch": 4, "learning_rate": 1e-2, "steps": 12},
    {"length": 32, "batch": 4, "learning_rate": 5e-3, "steps": 6, "schedule": "poly"},
]
GIVEN = ("log", "examples", "vocab", "step_bands", "asked")
"""What is given to a training beside its settings."""


@pytest.fixture
def train(prepared: Prepared, tmp_path: Path) -> Callable[..., Artifact]:
    return trains_into(prepared, tmp_path)


def trains_into(prepared: Prepared, folder: Path) -> Callable[..., Artifact]:
    """`train(name, optim=..., log=..., examples=..., vocab=..., step_bands=..., asked=..., **train settings)`: trains
    into `folder / name`.

    The network is the one described in `folder / "bert.json"`.
    """
    (folder / "bert.json").write_text(json.dumps(MODEL))

    def start(name: str = "train", optim: Any = None, dropout: float | None = None, **settings: Any) -> Artifact:
        given = {key: settings.pop(key) for key in GIVEN if key in settings}
        values = {"phases": PHASES, "heldout_sequences": 32, "checkpoint_every": 4, "evaluate_every": 6, "log_every": 2}
        return run(
            Settings(
                TrainConfig.model_validate(values | settings),
                BertModelConfig(config=folder / "bert.json", dropout=dropout),
                optim or AdamWConfig(),
                given.get("asked"),
            ),
            Inputs(given.get("examples", prepared.examples), given.get("vocab", prepared.vocab)),
            StageContext(folder / name, given.get("log", SILENT)),
            step_bands=given.get("step_bands", ()),
        )

    return start


@pytest.fixture
def no_dropout() -> dict[str, Any]:
    return {"dropout": 0.0}


@pytest.fixture(params=[AdamWConfig(), LambConfig(), MuonConfig()], ids=["adamw", "lamb", "muon"])
def optim(request: pytest.FixtureRequest) -> Any:
    return request.param
