"""Seconds that starting operations takes, whatever their sizes: what a small network's steps mostly are.

Those of a processor are of one thread on an EPYC with AVX-512: passes and updates of networks 32 wide, of 1 to 12
layers and 1 to 32 lengths, in processor seconds, the fastest of 25.
"""

from __future__ import annotations

import math

from bertwright.model.config import NetworkConfig
from bertwright.plan.work import PhaseWork

_GPU_LAYER = 150e-6
"""Of a layer, forward and backward."""
_LAYER, _LENGTH, _PASS = 0.9e-3, 0.15e-3, 2.5e-3
"""Of a layer; of its attention for each length that the pass has sequences of; of embeddings, heads and losses. All
forward and backward."""
_TENSOR, _STEP = 20e-6, 2e-3
"""Of a tensor's norm, clipping and update; and of what is done once a step: its batch is handed over and told of, the
rate is set, a row of metrics is added to."""
_COMPILED = 0.3
"""Share of those of a pass that is left where the network is compiled."""


def pass_calls(network: NetworkConfig, work: PhaseWork, sequences: float, padded: bool, gpu: bool) -> float:
    """Of a forward and a backward pass over so many sequences that is not compiled."""
    if gpu:
        return network.num_hidden_layers * _GPU_LAYER
    lengths = 1.0 if padded else distinct_lengths(sequences, work.mean_length, work.phase.length)
    return network.num_hidden_layers * (_LAYER + lengths * _LENGTH) + _PASS


def compiled(seconds: float) -> float:
    """What is left of the calls of a pass where the network is compiled."""
    return _COMPILED * seconds


def step_calls(network: NetworkConfig, gpu: bool) -> float:
    """Of what follows the passes of a step; a GPU is given many tensors at once."""
    return 0.0 if gpu else len(network.tensors) * _TENSOR + _STEP


def distinct_lengths(sequences: float, mean: float, longest: int) -> float:
    """How many lengths so many sequences have: full ones, and all others of any length below alike."""
    shorter = sequences * min(1.0, 2 - 2 * mean / longest)
    return 1 + longest * (1 - math.pow(1 - 1 / longest, shorter))
