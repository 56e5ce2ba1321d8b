"""Seven small trainings that between them use both kernels, packing, accumulation, two ranks, LAMB and AdamW.

Fresh weights are so small that a layer is nearly linear. One training begins with large ones, so that the form of GELU,
softmax and tanh is part of its losses.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.stage_context import StageContext
from bertwright.model.bert.config import BertModelConfig
from bertwright.optim.config import OptimConfig
from bertwright.train.config import TrainConfig
from bertwright.train.run import run
from bertwright.train.settings.identity import Inputs
from bertwright.train.settings.identity import Settings as TrainSettings

NETWORK = {
    "vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 32,
}  # fmt: skip
SHORT = {"length": 16, "batch": 12, "learning_rate": 5e-3, "steps": 12}
LONG = {"length": 32, "batch": 6, "learning_rate": 2e-3, "steps": 8, "schedule": "poly"}
TRAINING = {"heldout_sequences": 16, "checkpoint_every": 20, "evaluate_every": 10, "log_every": 1, "device": "cpu"}

Settings = dict[str, Any]
"""What a training differs in: `network` and `phase` values, `optim`, `attention_dropout`, `attention`, `ranks`."""

SETTINGS: dict[str, Settings] = {
    "adamw-sequences": {"optim": {"kind": "adamw"}},
    "lamb-sequences": {"optim": {"kind": "lamb"}},
    "lamb-padded": {"optim": {"kind": "lamb"}, "attention_dropout": 0.1, "attention": "padded"},
    "adamw-packing": {"optim": {"kind": "adamw"}, "phase": {"packing": True, "micro_batch": 2}},
    "lamb-accumulation": {"optim": {"kind": "lamb"}, "phase": {"micro_batch": 5}},
    "adamw-large-weights": {"optim": {"kind": "adamw"}, "network": {"initializer_range": 0.3}},
    "adamw-two-ranks": {"optim": {"kind": "adamw"}, "phase": {"micro_batch": 3}, "ranks": 2},
}


def train(name: str, examples: Artifact, vocab: Artifact, out: Path, drops: bool = True, **training: Any) -> Artifact:
    """The finished training `name`, `training` in place of some settings, without dropout if it does not drop; with
    several ranks the share of this one."""
    settings = SETTINGS[name]
    dropped = {"dropout": 0.1, "attention_dropout": settings.get("attention_dropout", 0.0)}
    out.parent.mkdir(parents=True, exist_ok=True)
    network = out.parent / f"{name}.bert.json"
    network.write_text(json.dumps({**NETWORK, **settings.get("network", {})}))
    attention = {"attention": settings.get("attention", "auto")}
    phases = [phase | settings.get("phase", {}) for phase in (SHORT, LONG)]
    return run(
        TrainSettings(
            TrainConfig.model_validate({**TRAINING, **attention, "phases": phases, **training}),
            BertModelConfig(config=network, **dropped if drops else dict.fromkeys(dropped, 0.0)),
            TypeAdapter(OptimConfig).validate_python(settings["optim"]),
        ),
        Inputs(examples, vocab),
        StageContext(out),
    )


def train_as_rank(name: str, examples: Path, vocab: Path, out: Path, environment: dict[str, str]) -> None:
    """The share of the rank that `environment` says, in a process of its own."""
    os.environ.update(environment)
    torch.set_num_threads(1)
    train(name, open_artifact(examples), open_artifact(vocab), out)
