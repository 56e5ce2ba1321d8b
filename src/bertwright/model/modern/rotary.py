"""Positions as rotations of queries and keys: RoPE, Su et al. 2021 (RoFormer) §3.2.2.

The D elements of a head form D/2 pairs, the i-th with the (i + D/2)-th. At position m the i-th pair is rotated by
m·θ^(-2i/D) radians, so the product of a query and a key depends on their distance. As in transformers, the elements of
a pair are half a width apart; in the paper they are adjacent, which is the same network with its rows in another order.

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
    """Return the rotation of tokens at `position_ids` [T] for heads of `width` D; `theta` is the base of wavelengths.

    Always in float32, as in transformers: in bfloat16, distant positions would be indistinguishable.
    """
    exponents = torch.arange(0, width, 2, dtype=torch.float32, device=position_ids.device) / width
    # Not a buffer: it is only D/2 numbers per batch, and networks are also built on the meta device (`saved`).
    angles = position_ids[:, None, None].float() * (1.0 / theta**exponents)
    return Rotation(angles.cos(), angles.sin())


def rotate(x_TAD: Tensor, turned: Rotation) -> Tensor:
    """Rotate queries or keys [T, A, D] by the angles of their positions; returns [T, A, D]."""
    first, second = x_TAD.chunk(2, dim=-1)
    cos, sin = turned
    # Products with float32 are at least float32, so cast the result back to the input's dtype.
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x_TAD.dtype)
