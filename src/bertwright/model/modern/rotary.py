"""Positions as rotations of queries and keys: RoPE, Su et al. 2021 (RoFormer) §3.2.2.

The numbers of a head's width D are D/2 pairs, the i-th and the (i + D/2)-th; at position m the i-th pair is turned by
m·θ^(-2i/D) (radians), so a product of a query and a key hangs on how far they are apart. Pairs lie as in transformers,
half a width apart; in the paper they are neighbours, which is the same network with its rows in another order.

Names carry shapes: T tokens, A heads, D head width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Rotation(NamedTuple):
    """Cosines and sines of the angles of every token, the same for all heads."""

    cos: Tensor
    """[T, 1, D/2], float32."""
    sin: Tensor
    """[T, 1, D/2], float32."""


def rotation(position_ids: Tensor, width: int, theta: float) -> Rotation:
    """The rotation of tokens at `position_ids` [T] for heads of `width` D; `theta` is the base of the wavelengths.

    In float32 whatever the network computes in, as in transformers: in bfloat16 far positions would fall together.
    """
    exponents = torch.arange(0, width, 2, dtype=torch.float32, device=position_ids.device) / width
    # Not kept as a buffer: D/2 numbers a batch, and a network is also made without memory for its tensors (`saved`).
    angles = position_ids[:, None, None].float() * (1.0 / theta**exponents)
    return Rotation(angles.cos(), angles.sin())


def rotate(x_TAD: Tensor, turned: Rotation) -> Tensor:
    """Queries or keys turned by the angles of their positions, [T, A, D]."""
    first, second = x_TAD.chunk(2, dim=-1)
    cos, sin = turned
    # Products with float32 are at least float32; what comes out has the type of what went in.
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x_TAD.dtype)
