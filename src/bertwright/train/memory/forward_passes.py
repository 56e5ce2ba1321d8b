"""How a rank's steps are divided into forward passes, and the largest of these to be expected from the examples.

Does not import torch.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

from bertwright.examples.sequences import Sequences
from bertwright.train.memory.kept_numbers import Pass
from bertwright.train.memory.rank_memory import Computing, share_of
from bertwright.train.settings.phase_config import PhaseConfig

_STEPS = 1000
"""Stands for an unknown number of steps."""


def micro_batches(phase: PhaseConfig, ranks: int, mean_length: float) -> int:
    """Return the forward passes per step on each of `ranks` ranks at full batch size."""
    share, size = share_of(phase, ranks), phase.micro_batching
    if size.micro_tokens:
        return max(1, math.ceil(share * mean_length / size.micro_tokens))
    if size.row_tokens:  # rows of several sequences, nearly full
        return max(1, math.ceil(share * mean_length / size.row_tokens / size.micro_batch))
    return max(1, math.ceil(share / size.micro_batch))


def micro_sequences(phase: PhaseConfig, ranks: int, mean_length: float) -> int:
    """Return the mean number of sequences per forward pass."""
    return max(1, round(share_of(phase, ranks) / micro_batches(phase, ranks, mean_length)))


def largest_pass(phase: PhaseConfig, computing: Computing, examples: Sequences, steps: int | None = None) -> Pass:
    """Return the largest forward pass to be expected on a rank in `steps` steps over the examples of the phase.

    Rows are as long as the longest example: sooner or later a pass has it.
    """
    ranks, size, mean = computing.sharing.ranks, phase.micro_batching, examples.mean_length
    if computing.full_rows or size.row_tokens or size.micro_tokens:
        return _full_pass(phase, computing, examples)
    sequences, normal = float(micro_sequences(phase, ranks, mean)), NormalDist()
    if (parts := micro_batches(phase, ranks, mean)) > 1:
        # Sequences are grouped by length, so the longest of a step share one pass: the mean of the upper tail of a
        # normal distribution.
        mean += examples.deviation * normal.pdf(normal.inv_cdf(1 - 1 / parts)) * parts
    else:
        # The largest mean length of a batch over all steps.
        most = expected_maximum(max(1, steps or _STEPS))
        mean += max(0.0, most) * examples.deviation / math.sqrt(sequences)
    tokens = sequences * min(mean, float(examples.longest))
    return Pass(sequences, tokens, examples.longest, tokens * max(mean, examples.mean_square / examples.mean_length))


def _full_pass(phase: PhaseConfig, computing: Computing, examples: Sequences) -> Pass:
    """Return a pass whose size the settings determine: rows of full length, or a number of tokens."""
    rows = min(phase.micro_batching.micro_batch, share_of(phase, computing.sharing.ranks))
    if computing.full_rows:
        return Pass.full(rows, phase.length)
    full = Pass.full(0, examples.longest, phase.micro_tokens) if phase.micro_tokens else Pass.full(rows, phase.length)
    return replace(full, pairs=full.tokens * examples.mean_square / examples.mean_length)


def expected_maximum(number: float) -> float:
    """Return the expected largest of `number` normal values, in deviations above their mean (Blom 1958)."""
    return NormalDist().inv_cdf((number - 0.375) / (number + 0.25))
