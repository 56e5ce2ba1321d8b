"""Checks that tensors read from a checkpoint are an average of this network's weights."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from bertwright.core.errors import CheckpointError


def check_tensors(state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Raise `CheckpointError` unless `state` has exactly one tensor for each of the weights, of the same shape."""
    found = {name: list(tensor.shape) for name, tensor in state.items()}
    wanted = {name: list(tensor.shape) for name, tensor in weights.items()}
    if wrong := [name for name in sorted(found.keys() | wanted.keys()) if found.get(name) != wanted.get(name)]:
        raise CheckpointError(
            f"the average of the weights in this checkpoint belongs to another network: {wrong[0]} is "
            f"{found.get(wrong[0], 'absent')} there and {wanted.get(wrong[0], 'absent')} here. Restore the "
            "checkpoint, or take an older one."
        )
