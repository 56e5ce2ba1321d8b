"""Steps of bertwright: the training step of a run with its loader a step ahead, without files."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch

from bertwright.bench.workload import VOCABULARY, Workload, loader_of
from bertwright.examples.loader import StepCounts
from bertwright.examples.masking_config import MaskingConfig
from bertwright.examples.padding import Room
from bertwright.model.attention.kernel import kernel_for
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.device import torch_settings
from bertwright.model.pretraining import PreTrainingModel
from bertwright.objectives.pretraining import PreTraining
from bertwright.optim.config import AdamWConfig
from bertwright.train.engine.single import Single
from bertwright.train.precision.config import Bf16Config, Fp32Config
from bertwright.train.precision.precision import build_precision
from bertwright.train.prefetch import prefetch
from bertwright.train.ranks import Ranks
from bertwright.train.step import StepSettings, Trained, train_step


def ours(workload: Workload, dropout: float, bf16: bool, threads: int) -> Iterator[tuple[float, float]]:
    """Seconds and processor seconds of step after step, for ever."""
    with torch_settings(threads, keep_kernels=bf16):
        trained, loader = _trained(workload, dropout, bf16), loader_of(workload)
        room = Room(workload.batch, workload.length, MaskingConfig().most(workload.length))
        ahead = prefetch(lambda step: (loader.step(step), loader.counts(step)), 0, 1 << 30)
        while True:
            began, used = time.perf_counter(), time.process_time()
            (micro_batches, counts), _ = next(ahead)
            train_step(
                trained,
                (trained.read(batch, room) for batch in micro_batches),
                {term: getattr(StepCounts(*counts), what) for term, what in trained.objective.counted.items()},
                StepSettings(learning_rate=1e-4, dropout_key=1),
            )
            yield time.perf_counter() - began, time.process_time() - used


def _trained(workload: Workload, dropout: float, bf16: bool) -> Trained:
    torch.manual_seed(1)
    network = BertModelConfig(size=workload.size, dropout=dropout).resolve(VOCABULARY.size, workload.pairs)
    model = PreTrainingModel(network, kernel_for("cpu")).train()
    precision = build_precision(Bf16Config() if bf16 else Fp32Config(), torch.device("cpu"))
    engine = Single(model, AdamWConfig(max_grad_norm=1.0))
    return Trained(model, PreTraining(workload.pairs), engine, Ranks(), precision)
