"""Seconds spent on starting operations, independent of their size; these dominate the steps of small networks.

The processor constants are for one thread on an EPYC with AVX-512: passes and updates of networks 32 wide, with 1 to 12
layers and 1 to 32 lengths, in processor seconds, the fastest of 25.
"""

from __future__ import annotations

import math

from bertwright.check.work import PhaseWork
from bertwright.model.config import NetworkConfig

_GPU_LAYER = 150e-6
"""Per layer, forward and backward."""
_LAYER, _LENGTH, _PASS = 0.9e-3, 0.15e-3, 2.5e-3
"""Per layer; per distinct sequence length in the attention of each layer; and per pass for embeddings, heads and
losses. All include forward and backward."""
_TENSOR, _STEP = 20e-6, 2e-3
"""Per tensor, for its norm, clipping and update; and per step, for receiving its batch and counts, setting the learning
rate and adding to a row of metrics."""
_COMPILED = 0.3
"""Share of a pass's call overhead that remains if the network is compiled."""


def pass_calls(network: NetworkConfig, work: PhaseWork, sequences: float, padded: bool, gpu: bool) -> float:
    """Call overhead, in seconds, of an uncompiled forward and backward pass over `sequences` sequences."""
    if gpu:
        return network.num_hidden_layers * _GPU_LAYER
    lengths = 1.0 if padded else distinct_lengths(sequences, work.mean_length, work.examples.longest)
    return network.num_hidden_layers * (_LAYER + lengths * _LENGTH) + _PASS


def compiled(seconds: float) -> float:
    """The call overhead of a pass that remains if the network is compiled."""
    return _COMPILED * seconds


def step_calls(network: NetworkConfig, gpu: bool) -> float:
    """Call overhead, in seconds, of the rest of a step; GPUs process many tensors per call, so theirs is 0."""
    return 0.0 if gpu else len(network.tensors) * _TENSOR + _STEP


def distinct_lengths(sequences: float, mean: float, longest: int) -> float:
    """Expected number of distinct lengths among `sequences`: some at full length, the rest uniform over shorter
    lengths."""
    # If a share s has uniform lengths and the rest the longest one, the mean is longest * (1 - s / 2).
    shorter = sequences * min(1.0, 2 - 2 * mean / longest)
    # n draws from m values give m * (1 - (1 - 1/m)^n) distinct ones on average.
    return 1 + longest * (1 - math.pow(1 - 1 / longest, shorter))
