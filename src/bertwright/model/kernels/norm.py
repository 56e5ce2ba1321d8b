"""Bias, dropout, residual and layer norm after a product: norm(residual + dropout(x + bias)), each way in one pass.

Backward reads the product's output and the residual again and computes the mask from its counter, so nothing is kept
beside them but two numbers a row. It sums the gradients of bias, weight and shift in registers, over the rows of each
program; torch adds those of all programs. Sums are in a fixed order, so results are deterministic.

Its floor is memory: forward reads two tensors and writes one, backward reads three and writes two. For 65,536 rows of
768 in bfloat16 these are 0.30 and 0.50 GB, so 0.09 and 0.15 ms on an H100 (3.35 TB/s).

Names carry shapes: N rows, H their width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import layer_norm

from bertwright.model.kernels.counter import Mask, is_kept, plain_factors, row_words, threshold_of


class Norm(NamedTuple):
    """A layer norm."""

    weight_H: Tensor
    """[H] the factors of normed columns."""
    shift_H: Tensor
    """[H] what is added to them."""
    eps: float
    """Added to the variance."""


_PROGRAMS = 528
"""Programs of a backward pass: four for each of an H100's 132 multiprocessors."""


@triton.jit
def _before_norm(
    x_ptr, bias_ptr, residual_ptr, seed_ptr, row, columns, width, threshold, factor, DROPOUT: tl.constexpr
):
    """A row of residual + dropout(x + bias) in float32, zero beyond its width, and which elements are kept."""
    inside = columns < width
    at = row * width + columns
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    kept = inside
    if DROPOUT:
        one, two = row_words(tl.load(seed_ptr), row, row * 0)
        kept = is_kept(one, two, columns, threshold)
        x = tl.where(kept, x * factor, 0.0)
    return x + tl.load(residual_ptr + at, mask=inside, other=0.0).to(tl.float32), kept


@triton.jit(do_not_specialize=("threshold",))
def _layer_norm_forward(
    x_ptr, bias_ptr, residual_ptr, weight_ptr, shift_ptr, out_ptr, mean_ptr, scale_ptr, seed_ptr,
    width, eps, threshold, factor, BLOCK: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = columns < width
    x, _ = _before_norm(x_ptr, bias_ptr, residual_ptr, seed_ptr, row, columns, width, threshold, factor, DROPOUT)
    mean = tl.sum(x, 0) / width
    centred = tl.where(inside, x - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / width + eps)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    out = centred * scale * weight + shift
    tl.store(out_ptr + row * width + columns, out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, scale)


@triton.jit(do_not_specialize=("rows", "threshold"))
def _layer_norm_backward(
    x_ptr, bias_ptr, residual_ptr, weight_ptr, mean_ptr, scale_ptr, seed_ptr, d_ptr, dx_ptr, dresidual_ptr, sums_ptr,
    rows, width, threshold, factor, BLOCK: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """Every program takes each of its number-th rows, and writes the sums of bias, weight and shift over them."""
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    d_bias, d_weight, d_shift = (
        tl.zeros([BLOCK], tl.float32),
        tl.zeros([BLOCK], tl.float32),
        tl.zeros([BLOCK], tl.float32),
    )
    first, step = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    for turn in range(tl.cdiv(rows - first, step)):
        row = first + turn * step
        x, kept = _before_norm(x_ptr, bias_ptr, residual_ptr, seed_ptr, row, columns, width, threshold, factor, DROPOUT)
        at = row * width + columns
        scale = tl.load(scale_ptr + row)
        normed = tl.where(inside, (x - tl.load(mean_ptr + row)) * scale, 0.0)
        d = tl.load(d_ptr + at, mask=inside, other=0.0).to(tl.float32)
        d_weight += d * normed
        d_shift += d
        weighted = d * weight
        along = tl.sum(weighted * normed, 0) / width
        d_before = (weighted - tl.sum(weighted, 0) / width - normed * along) * scale
        tl.store(dresidual_ptr + at, d_before.to(dresidual_ptr.dtype.element_ty), mask=inside)
        if DROPOUT:
            d_before = tl.where(kept, d_before * factor, 0.0)
        tl.store(dx_ptr + at, d_before.to(dx_ptr.dtype.element_ty), mask=inside)
        d_bias += d_before
    sums = sums_ptr + tl.program_id(0) * 3 * width + columns
    tl.store(sums, d_bias, mask=inside)
    tl.store(sums + width, d_weight, mask=inside)
    tl.store(sums + 2 * width, d_shift, mask=inside)


def _constants(width: int, p: float) -> dict[str, Any]:
    block = triton.next_power_of_2(width)
    return {"BLOCK": block, "DROPOUT": p > 0, "num_warps": 4 if block <= 1024 else 8}


@torch.library.custom_op("bertwright::add_norm", mutates_args=())
def add_norm_forward(
    x_NH: Tensor, bias_H: Tensor, residual_NH: Tensor, weight_H: Tensor, shift_H: Tensor, seed: Tensor, eps: float,
    p: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the normed rows [N, H] in the residual's dtype, and each row's mean [N] and 1 / deviation [N]."""
    rows, width = x_NH.shape
    out_NH = torch.empty_like(residual_NH)
    mean_N, scale_N = (x_NH.new_empty(rows, dtype=torch.float32) for _ in range(2))
    if rows:
        pointers = (x_NH, bias_H, residual_NH, weight_H, shift_H, out_NH, mean_N, scale_N, seed)
        _layer_norm_forward[(rows,)](*pointers, width, eps, *threshold_of(p), **_constants(width, p))
    return out_NH, mean_N, scale_N


@add_norm_forward.register_fake
def _(x_NH, bias_H, residual_NH, weight_H, shift_H, seed, eps, p):
    return torch.empty_like(residual_NH), *(x_NH.new_empty(len(x_NH), dtype=torch.float32) for _ in range(2))


@torch.library.custom_op("bertwright::add_norm_backward", mutates_args=())
def add_norm_backward(
    d_NH: Tensor, x_NH: Tensor, bias_H: Tensor, residual_NH: Tensor, weight_H: Tensor, mean_N: Tensor, scale_N: Tensor,
    seed: Tensor, p: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of x and of the residual [N, H], and of bias, weight and shift [3, H] in float32."""
    rows, width = x_NH.shape
    dx_NH, dresidual_NH = torch.empty_like(x_NH), torch.empty_like(residual_NH)
    programs = max(1, min(rows, _PROGRAMS))
    sums_P3H = x_NH.new_empty(programs, 3, width, dtype=torch.float32)
    pointers = (x_NH, bias_H, residual_NH, weight_H, mean_N, scale_N, seed, d_NH, dx_NH, dresidual_NH, sums_P3H)
    _layer_norm_backward[(programs,)](*pointers, rows, width, *threshold_of(p), **_constants(width, p))
    return dx_NH, dresidual_NH, sums_P3H.sum(0)


@add_norm_backward.register_fake
def _(d_NH, x_NH, bias_H, residual_NH, weight_H, mean_N, scale_N, seed, p):
    sums_3H = x_NH.new_empty(3, x_NH.shape[1], dtype=torch.float32)
    return torch.empty_like(x_NH), torch.empty_like(residual_NH), sums_3H


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x_NH, bias_H, residual_NH, weight_H, shift_H, seed, _, ctx.p = inputs
    ctx.save_for_backward(x_NH, bias_H, residual_NH, weight_H, *output[1:], seed)
    ctx.dtypes = (bias_H.dtype, weight_H.dtype, shift_H.dtype)


def _differentiate(ctx: Any, d_NH: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    dx_NH, dresidual_NH, sums_3H = add_norm_backward(d_NH.contiguous(), *ctx.saved_tensors, ctx.p)
    d_bias_H, d_weight_H, d_shift_H = (x_H.to(dtype) for x_H, dtype in zip(sums_3H, ctx.dtypes, strict=True))
    return dx_NH, d_bias_H, dresidual_NH, d_weight_H, d_shift_H, None, None, None


add_norm_forward.register_autograd(_differentiate, setup_context=_keep)


def add_norm(x_NH: Tensor, bias_H: Tensor, residual_NH: Tensor, norm: Norm, mask: Mask) -> Tensor:
    """The norm of residual + dropout(x + bias), [N, H] in the residual's dtype; computed in float32."""
    inputs = (x_NH.contiguous(), bias_H, residual_NH.contiguous(), norm.weight_H, norm.shift_H)
    out_NH, _, _ = add_norm_forward(*inputs, mask.seed, norm.eps, mask.p)
    return out_NH


def plain_add_norm(x_NH: Tensor, bias_H: Tensor, residual_NH: Tensor, norm: Norm, mask: Mask) -> Tensor:
    """The same in plain torch, [N, H], with the same mask."""
    x_NH = x_NH + bias_H
    if mask.p:
        rows, columns = (torch.arange(size, device=x_NH.device) for size in x_NH.shape)
        x_NH = x_NH * plain_factors(mask, rows, 0, columns)
    return layer_norm(residual_NH + x_NH, norm.weight_H.shape, *norm)
