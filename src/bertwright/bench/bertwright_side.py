"""Training steps of bertwright: the step of a run, with its loader one step ahead, without writing files."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import cast

import torch

from bertwright.bench.workload import Step, Training, Workload, loader_of
from bertwright.examples.example_set import StepCounts
from bertwright.model.classifier import Classifier
from bertwright.model.config import kernel_for
from bertwright.model.device import torch_settings
from bertwright.model.model import Model
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import AdamWConfig
from bertwright.tasks.classification.objective import Classification
from bertwright.tasks.objective import Objective
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.engine.single import Single
from bertwright.train.micro_batch import prefetch
from bertwright.train.monitor.throughput import Throughput, measure_throughput
from bertwright.train.precision.config import Bf16Config, Fp32Config
from bertwright.train.precision.precision import build_precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepSettings, train_step


def bertwright_side(workload: Workload, training: Training) -> Callable[[int], list[Step]]:
    """Returns a function that takes the next n steps. The floor is measured before each block, under current load."""
    with _settings(training):
        trained, loader = _build_trainee(workload, training), loader_of(workload)
    # As in a run, a thread draws the next batch while a step computes. There is no last step.
    ahead = prefetch(lambda step: (loader.step(step), loader.counts(step)), 0, 1 << 30)

    def step(meter: Throughput) -> Step:
        # Waiting for the batch counts, as it does for the peer, whose clock runs from the end of one step to the next.
        began, used = time.perf_counter(), time.process_time()
        (micro_batches, counts), _ = next(ahead)
        train_step(
            trained,
            (trained.read(batch, loader.room) for batch in micro_batches),
            {term: getattr(StepCounts(*counts), what) for term, what in trained.objective.counted.items()},
            # Constant, because neither of them affects the time of a step.
            StepSettings(learning_rate=1e-4, dropout_key=1),
        )
        took = time.perf_counter() - began, time.process_time() - used
        return Step(*took, floor=meter.flops(micro_batches) / meter.floor)

    def block(number: int) -> list[Step]:
        with _settings(training):
            meter = measure_throughput(cast(Model, trained.model), trained.precision, loader.settings, trained.ranks)
            return [step(meter) for _ in range(number)]

    return block


def _settings(training: Training) -> AbstractContextManager[None]:
    # As in training: batches have shapes that repeat only in low precision, which pads them (decision 0030).
    return torch_settings(training.threads, keep_kernels=training.precision == "bf16")


def _build_trainee(workload: Workload, training: Training) -> Trainee:
    torch.manual_seed(1)
    network = workload.network(training)
    model: Model
    objective: Objective
    if workload.labels:
        model, objective = Classifier(network, kernel_for("cpu")), Classification(len(workload.labels))
    else:
        model, objective = PreTrainingModel(network, kernel_for("cpu")), PreTraining(workload.pairs)
    model.train()
    precision = build_precision(Bf16Config() if training.precision == "bf16" else Fp32Config(), torch.device("cpu"))
    # The Trainer's default optimizer and limit of the norm, so that both sides do the same work.
    engine = Single(model, AdamWConfig(max_grad_norm=1.0))
    return Trainee(model, objective, engine, Ranks(), precision)
