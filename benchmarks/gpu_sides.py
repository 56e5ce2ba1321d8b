"""Our steps in benchmarks/gpu.py: those of a run, with its loader on a thread, clipping and LAMB."""

from collections.abc import Generator
from dataclasses import replace

import torch

from bertwright.core.log import SILENT
from bertwright.examples.batch import MicroBatch
from bertwright.examples.example_set import StepCounts
from bertwright.model.batch import PackedBatch, to_device
from bertwright.model.flops import STEP, forward_flops
from bertwright.optim.config import LambConfig
from bertwright.train.engine.single import Single
from bertwright.train.graph.recorded import build_recorder
from bertwright.train.micro_batch import prefetch
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import build_network
from bertwright.train.step import StepSettings, train_step
from gpu_cases import Case, Side

Steps = Generator[tuple[int, int, float]]
"""Trains step after step, for ever; yields the sequences, real tokens and operations of each."""


def our_steps(case: Case, side: Side, device: torch.device) -> Steps:
    """The network is built as a run builds it, from the side's section [train]."""
    torch.backends.cuda.enable_cudnn_sdp(side.cudnn)
    network = build_network(case.network, side.config(case), device)
    engine = Single(network.model, LambConfig())
    recorder = build_recorder(side.config(case), engine, device, SILENT)
    trained = replace(network.trainee(engine, Ranks(), ""), recorder=recorder)
    drawn = case.loader(side.packed)

    def fetch(step: int) -> tuple[list[MicroBatch], list[PackedBatch], StepCounts]:
        """Draw and prepare a step on the loader's thread, as a training does."""
        batches = drawn.step(step)
        return batches, [trained.prepare(batch, drawn.room) for batch in batches], drawn.counts(step)

    for (batches, prepared, counts), _ in prefetch(fetch, 0, 1 << 30):
        totals = {term: getattr(counts, what) for term, what in trained.objective.counted.items()}
        lengths = [batch.cu_seqlens[1:] - batch.cu_seqlens[:-1] for batch in batches]
        flops = sum(forward_flops(case.network, n, len(b.labels)) for n, b in zip(lengths, batches, strict=True))
        train_step(trained, (to_device(batch, device) for batch in prepared), totals, StepSettings(1e-4, 1))
        yield sum(map(len, lengths)), counts.tokens, STEP * flops
