"""Trainings on several ranks of this machine, each rank a process that has already imported torch."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from tests.disk import fsync
from tests.pipeline.command import context

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import Interrupted
from bertwright.core.stage_context import StageContext
from bertwright.evaluate.config import EvaluateConfig
from bertwright.model.config import ModelConfig
from bertwright.optim.config import OptimConfig
from bertwright.train.config import TrainConfig
from bertwright.train.run import run
from bertwright.train.settings.identity import Inputs, Settings

NETWORK = {
    "vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 32, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
PHASES = [
    {"length": 16, "batch": 7, "micro_batch": 2, "learning_rate": 5e-3, "steps": 12},
    {"length": 32, "batch": 5, "micro_batch": 2, "learning_rate": 2e-3, "steps": 8, "schedule": "poly"},
]
TRAINING = {"heldout_sequences": 21, "checkpoint_every": 10, "evaluate_every": 10, "log_every": 1, "device": "cpu"}


@dataclass(frozen=True)
class Training:
    """One training; its folder has its name."""

    name: str
    train: Mapping[str, Any] = field(default_factory=dict)
    optim: Mapping[str, Any] = field(default_factory=lambda: {"kind": "adamw"})
    stop_after: int = 0
    """Number of steps of this start after which a signal asks it to stop; 0: never."""
    stop_scoring: int = 0
    """Which scoring of this start, counted from 1, a signal cuts short; 0: none."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """The network; empty: a small BERT."""
    asked: EvaluateConfig | None = None
    """What it is asked at every checkpoint."""

    def run(self, examples: Path, vocab: Path, folder: Path) -> Artifact | None:
        """The finished training; on other ranks than the first nothing."""
        folder.mkdir(parents=True, exist_ok=True)
        network = folder / f"{self.name}.{os.getpid()}.json"
        network.write_text(json.dumps(NETWORK))
        model = self.model or {"kind": "bert", "config": str(network)}
        settings = Settings(
            TrainConfig.model_validate({**TRAINING, "phases": PHASES, **self.train}),
            TypeAdapter[ModelConfig](ModelConfig).validate_python(model),
            TypeAdapter(OptimConfig).validate_python(self.optim),
            self.asked,
        )
        return run(
            settings,
            Inputs(open_artifact(examples), open_artifact(vocab)),
            StageContext(folder / self.name, log=_Stopping(self.stop_after, self.stop_scoring)),
        )


def start_ranks(
    world: int, trainings: Sequence[Training], examples: Path, vocab: Path, folder: Path
) -> list[ForkServerProcess]:
    """Start ranks that run the trainings one after another; the output of rank R is in `folder`.R."""
    ports, processes = free_ports(len(trainings)), []
    for rank in range(world):
        environment = {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world),
            "MASTER_ADDR": "127.0.0.1",
        }  # fmt: skip
        log = folder.with_name(f"{folder.name}.{rank}")
        process = context().Process(
            target=_train, args=(list(trainings), examples, vocab, folder, log, environment, ports)
        )
        process.start()
        processes.append(process)
    return processes


def free_ports(number: int) -> list[str]:
    """Ports that are currently free."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [str(probe.getsockname()[1]) for probe in probes]


def train_on(world: int, trainings: Sequence[Training], examples: Path, vocab: Path, folder: Path) -> None:
    """Run the trainings on `world` ranks, one after another."""
    for process in (processes := start_ranks(world, trainings, examples, vocab, folder)):
        process.join()
    said = [folder.with_name(f"{folder.name}.{rank}").read_text() for rank in range(world)]
    assert not any(process.exitcode for process in processes), "".join(text[-500:] for text in said)


def _train(
    trainings: list[Training],
    examples: Path,
    vocab: Path,
    folder: Path,
    log: Path,
    environment: dict[str, str],
    ports: list[str],
) -> None:
    import torch

    os.environ.update(environment)
    os.fsync = fsync
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    torch.set_num_threads(1)
    for training, port in zip(trainings, ports, strict=True):
        # A separate port for each: a library may still hold what it opened for the previous training.
        os.environ["MASTER_PORT"] = port
        with contextlib.suppress(Interrupted):
            training.run(examples, vocab, folder)


class _Stopping:
    """A log that asks the process to stop after a given number of rows, or in a given scoring."""

    def __init__(self, after: int, scoring: int) -> None:
        self.rows, self.after, self.scored, self.scoring = 0, after, 0, scoring

    def say(self, message: str) -> None: ...

    def progress(self, stage: str, done: float, total: float, unit: str) -> None:
        if stage == "scoring" and done == 0:
            self.scored += 1
            if self.scored == self.scoring:
                os.kill(os.getpid(), signal.SIGTERM)

    def record(self, row: dict[str, Any]) -> None:
        self.rows += 1
        if self.rows == self.after:
            os.kill(os.getpid(), signal.SIGTERM)
