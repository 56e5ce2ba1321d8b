"""Attention within packed sequences of up to about 1,024 tokens, with windows and with dropout of attention weights.

The algorithm is that of FlashAttention 2 (Dao 2023): scores exist only in blocks, forward keeps the log-sum-exp of each
row, backward computes the blocks again. It is made for short sequences: if the longest fits one block, one
kernel computes all three gradients of a sequence and head, with five products and no second pass; else one computes the
gradients of queries, and another those of keys and values. No gradient is summed by atomics, so results are
deterministic. Dropout is that of a counter (`counter`), by the sequence, head, query and key.

Its floor is memory for short sequences and products for long ones. At length 128 and head width 64 in bfloat16 it moves
4·128·64·2 bytes and computes 4·128²·64 operations forward: 64 operations a byte, below the 150 to 300 that an A100 or
H100 needs to be busy with products, so memory is the limit: forward 0.12 ms for 65,536 tokens of width 768 at 3.35 TB/s
(q, k, v, out), backward 0.24 ms (q, k, v, out, their gradients). From length 512 on products are the limit.

Names carry shapes: T tokens, A heads, D head width, S sequences, Q queries and K keys of a sequence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bertwright.model.kernels.counter import Mask, is_kept, plain_factors, row_words, threshold_of

_LN2 = tl.constexpr(0.6931471805599453)
"""Scores are in units of log2, because GPUs have an instruction for powers of 2."""
_VARYING = ("tokens", "reach", "threshold")
"""Numbers for whose values a kernel is not compiled again."""
_INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


class Sequences(NamedTuple):
    """The sequences of a batch, and what their tokens see."""

    bounds: Tensor
    """[S + 1] int32, from 0 to T."""
    longest: int
    """None is longer."""
    reach: int | None = None
    """How far away a key may be that is seen, in tokens; None: any of its sequence."""


class Blocks(NamedTuple):
    """How a kernel divides its work."""

    queries: int
    keys: int
    warps: int
    stages: int


def blocks_for(kernel: str, width: int, longest: int, itemsize: int) -> Blocks:
    """The division of `forward`, `queries` or `keys` for heads of `width` and sequences of up to `longest` tokens.

    Blocks whose numbers stay in registers, as compiled for sm_80 and sm_90 (`tests/kernels`). Products of
    float32 are exact and use no tensor cores, so their blocks are small.
    """
    wide = width > 64
    if itemsize > 2:
        return Blocks(32, 32, 8, 1)
    match kernel:
        case "forward":
            return Blocks(128, 64, 8, 2) if wide or longest > 256 else Blocks(64, 64, 4, 2)
        case "queries":
            return Blocks(64, 64, 8, 2) if wide else Blocks(64, 32, 4, 2)
        case _ if longest <= 128 and not wide:
            return Blocks(32, 128, 8, 1)
        case _:
            return Blocks(32 if wide else 64, 64, 8, 2)


@triton.jit
def _dot(a, b):
    """The product in float32. Triton's interpreter multiplies the bits of bfloat16 as integers, so it gets float32."""
    if _INTERPRETED:
        product = tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    else:
        product = tl.dot(a, b, input_precision="ieee")
    return product


@triton.jit
def _sequence(bounds_ptr, heads):
    """The number of this program's sequence and head, its head, and the sequence's first token and length."""
    group = tl.program_id(0)
    start = tl.load(bounds_ptr + group // heads)
    return group, group % heads, start.to(tl.int64), tl.load(bounds_ptr + group // heads + 1) - start


@triton.jit
def _inside(rows, length, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr):
    inside = (rows < length)[:, None]
    if WIDTH != BLOCK_D:
        inside = inside & (tl.arange(0, BLOCK_D) < WIDTH)[None, :]
    return inside


@triton.jit
def _tile(ptr, rows, stride, length, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr):
    """[rows, BLOCK_D] of a sequence that begins at `ptr`; zero beyond its length and the head's width."""
    at = rows[:, None] * stride + tl.arange(0, BLOCK_D)[None, :]
    return tl.load(ptr + at, mask=_inside(rows, length, WIDTH, BLOCK_D), other=0.0)


@triton.jit
def _put(ptr, x, rows, stride, length, WIDTH: tl.constexpr, BLOCK_D: tl.constexpr):
    at = rows[:, None] * stride + tl.arange(0, BLOCK_D)[None, :]
    tl.store(ptr + at, x.to(ptr.dtype.element_ty), mask=_inside(rows, length, WIDTH, BLOCK_D))


@triton.jit
def _near(first, block: tl.constexpr, length, reach, other: tl.constexpr, WINDOW: tl.constexpr):
    """The range of the other side, from a multiple of `other`, that rows from `first` on see."""
    low, high = 0, length
    if WINDOW:
        low = tl.maximum(first - reach, 0) // other * other
        high = tl.minimum(first + block + reach, length)
    return low, high


@triton.jit
def _scores(product, queries, keys, length, reach, scale, WINDOW: tl.constexpr):
    """The scores in units of log2; minus infinity where a query does not see a key. Here and in `_block_gradients`
    `queries` and `keys`, one a column and one a row, say which side of the products is which."""
    seen = keys < length
    if WINDOW:
        seen = seen & (tl.abs(queries - keys) <= reach)
    return tl.where(seen, product * scale, float("-inf"))


@triton.jit(do_not_specialize=_VARYING)
def _attention_forward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, bounds_ptr, seed_ptr,
    q_token, q_head, k_token, k_head, v_token, v_head, tokens, heads, reach, scale, threshold, factor,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    WINDOW: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    group, head, start, length = _sequence(bounds_ptr, heads)
    first = tl.program_id(1) * BLOCK_Q
    if first >= length:
        return
    queries = first + tl.arange(0, BLOCK_Q)
    q = _tile(q_ptr + start * q_token + head * q_head, queries, q_token, length, WIDTH, BLOCK_D)
    if DROPOUT:
        one, two = row_words(tl.load(seed_ptr), queries, group)
    # Finite, so that a row that sees no key of a block subtracts no infinities.
    highest = tl.full([BLOCK_Q], -1e30, tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    out = tl.zeros([BLOCK_Q, BLOCK_D], tl.float32)
    low, high = _near(first, BLOCK_Q, length, reach, BLOCK_K, WINDOW)
    for key in range(low, high, BLOCK_K):
        keys = key + tl.arange(0, BLOCK_K)
        k = _tile(k_ptr + start * k_token + head * k_head, keys, k_token, length, WIDTH, BLOCK_D)
        scores = _scores(_dot(q, tl.trans(k)), queries[:, None], keys[None, :], length, reach, scale, WINDOW)
        higher = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(highest - higher)
        total = total * shrink + tl.sum(weights, 1)
        if DROPOUT:
            weights = tl.where(is_kept(one[:, None], two[:, None], keys[None, :], threshold), weights * factor, 0.0)
        v = _tile(v_ptr + start * v_token + head * v_head, keys, v_token, length, WIDTH, BLOCK_D)
        out = out * shrink[:, None] + _dot(weights.to(v.dtype), v)
        highest = higher
    total = tl.maximum(total, 1e-30)  # 0 where a row beyond the sequence sees no key
    width = heads * WIDTH
    _put(out_ptr + start * width + head * WIDTH, out / total[:, None], queries, width, length, WIDTH, BLOCK_D)
    tl.store(lse_ptr + head * tokens + start + queries, highest + tl.log2(total), mask=queries < length)


@triton.jit
def _block_gradients(
    product, d_weights, lse, delta, one, two, queries, keys, length, reach, scale, threshold, factor,
    WINDOW: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """The weights of a block after dropout, and the gradients of its scores."""
    weights = tl.exp2(_scores(product, queries, keys, length, reach, scale, WINDOW) - lse)
    dropped = weights
    if DROPOUT:
        kept = is_kept(one, two, keys, threshold)
        dropped = tl.where(kept, weights * factor, 0.0)
        d_weights = tl.where(kept, d_weights * factor, 0.0)
    return dropped, weights * (d_weights - delta)


@triton.jit(do_not_specialize=_VARYING)
def _attention_backward_queries(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, dout_ptr, dq_ptr, dk_ptr, dv_ptr, delta_ptr, bounds_ptr, seed_ptr,
    q_token, q_head, k_token, k_head, v_token, v_head, tokens, heads, reach, scale, threshold, factor,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    WINDOW: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of queries, and of each the product of output and its gradient (`delta`)."""
    group, head, start, length = _sequence(bounds_ptr, heads)
    first = tl.program_id(1) * BLOCK_Q
    if first >= length:
        return
    queries, width = first + tl.arange(0, BLOCK_Q), heads * WIDTH
    at = start * width + head * WIDTH
    q = _tile(q_ptr + start * q_token + head * q_head, queries, q_token, length, WIDTH, BLOCK_D)
    out = _tile(out_ptr + at, queries, width, length, WIDTH, BLOCK_D)
    dout = _tile(dout_ptr + at, queries, width, length, WIDTH, BLOCK_D)
    row = head * tokens + start + queries
    lse = tl.load(lse_ptr + row, mask=queries < length, other=0.0)
    delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), 1)
    tl.store(delta_ptr + row, delta, mask=queries < length)
    one, two = queries, queries
    if DROPOUT:
        one, two = row_words(tl.load(seed_ptr), queries, group)
    dq = tl.zeros([BLOCK_Q, BLOCK_D], tl.float32)
    low, high = _near(first, BLOCK_Q, length, reach, BLOCK_K, WINDOW)
    for key in range(low, high, BLOCK_K):
        keys = key + tl.arange(0, BLOCK_K)
        k = _tile(k_ptr + start * k_token + head * k_head, keys, k_token, length, WIDTH, BLOCK_D)
        v = _tile(v_ptr + start * v_token + head * v_head, keys, v_token, length, WIDTH, BLOCK_D)
        _, d_scores = _block_gradients(
            _dot(q, tl.trans(k)), _dot(dout, tl.trans(v)), lse[:, None], delta[:, None], one[:, None], two[:, None],
            queries[:, None], keys[None, :], length, reach, scale, threshold, factor, WINDOW, DROPOUT,
        )  # fmt: skip
        dq += _dot(d_scores.to(k.dtype), k)
    _put(dq_ptr + at, dq * (scale * _LN2), queries, width, length, WIDTH, BLOCK_D)


@triton.jit(do_not_specialize=_VARYING)
def _attention_backward_keys(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, dout_ptr, dq_ptr, dk_ptr, dv_ptr, delta_ptr, bounds_ptr, seed_ptr,
    q_token, q_head, k_token, k_head, v_token, v_head, tokens, heads, reach, scale, threshold, factor,
    WIDTH: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
    WINDOW: tl.constexpr, DROPOUT: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values; reads the `delta` that `_attention_backward_queries` wrote. If a
    block holds the WHOLE sequence, it computes `delta` and the gradients of queries, too."""
    group, head, start, length = _sequence(bounds_ptr, heads)
    first = tl.program_id(1) * BLOCK_K
    if first >= length:
        return
    keys, width = first + tl.arange(0, BLOCK_K), heads * WIDTH
    at = start * width + head * WIDTH
    k = _tile(k_ptr + start * k_token + head * k_head, keys, k_token, length, WIDTH, BLOCK_D)
    v = _tile(v_ptr + start * v_token + head * v_head, keys, v_token, length, WIDTH, BLOCK_D)
    dk = tl.zeros([BLOCK_K, BLOCK_D], tl.float32)
    dv = tl.zeros([BLOCK_K, BLOCK_D], tl.float32)
    low, high = _near(first, BLOCK_K, length, reach, BLOCK_Q, WINDOW)
    for query in range(low, high, BLOCK_Q):
        queries = query + tl.arange(0, BLOCK_Q)
        q = _tile(q_ptr + start * q_token + head * q_head, queries, q_token, length, WIDTH, BLOCK_D)
        dout = _tile(dout_ptr + at, queries, width, length, WIDTH, BLOCK_D)
        row = head * tokens + start + queries
        lse = tl.load(lse_ptr + row, mask=queries < length, other=0.0)
        if WHOLE:
            out = _tile(out_ptr + at, queries, width, length, WIDTH, BLOCK_D)
            delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), 1)
        else:
            delta = tl.load(delta_ptr + row, mask=queries < length, other=0.0)
        one, two = queries, queries
        if DROPOUT:
            one, two = row_words(tl.load(seed_ptr), queries, group)
        dropped, d_scores = _block_gradients(
            _dot(k, tl.trans(q)), _dot(v, tl.trans(dout)), lse[None, :], delta[None, :], one[None, :], two[None, :],
            queries[None, :], keys[:, None], length, reach, scale, threshold, factor, WINDOW, DROPOUT,
        )  # fmt: skip
        dv += _dot(dropped.to(dout.dtype), dout)
        d_scores = d_scores.to(q.dtype)
        dk += _dot(d_scores, q)
        if WHOLE:
            dq = _dot(tl.trans(d_scores), k) * (scale * _LN2)
            _put(dq_ptr + at, dq, queries, width, length, WIDTH, BLOCK_D)
    _put(dv_ptr + at, dv, keys, width, length, WIDTH, BLOCK_D)
    _put(dk_ptr + at, dk * (scale * _LN2), keys, width, length, WIDTH, BLOCK_D)


@torch.library.custom_op("bertwright::attention", mutates_args=())
def attention_forward(
    q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, bounds: Tensor, seed: Tensor, longest: int, reach: int, p: float
) -> tuple[Tensor, Tensor]:
    """Return the attended values [T, A, D] and the log-sum-exp (base 2) of the scores [A, T]; see `attention`."""
    tokens, heads, width = q_TAD.shape
    out_TAD = q_TAD.new_empty(tokens, heads, width)
    lse_AT = q_TAD.new_empty(heads, tokens, dtype=torch.float32)
    blocks = blocks_for("forward", width, longest, q_TAD.element_size())
    grid = ((len(bounds) - 1) * heads, triton.cdiv(longest, blocks.queries))
    pointers = (q_TAD, k_TAD, v_TAD, out_TAD, lse_AT, bounds, seed)
    _attention_forward[grid](*pointers, *_numbers(q_TAD, k_TAD, v_TAD, reach, p), **_constants(blocks, width, reach, p))
    return out_TAD, lse_AT


@attention_forward.register_fake
def _(q_TAD, k_TAD, v_TAD, bounds, seed, longest, reach, p):
    tokens, heads, width = q_TAD.shape
    return q_TAD.new_empty(tokens, heads, width), q_TAD.new_empty(heads, tokens, dtype=torch.float32)


@torch.library.custom_op("bertwright::attention_backward", mutates_args=())
def attention_backward(
    d_TAD: Tensor, q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, out_TAD: Tensor, lse_AT: Tensor, bounds: Tensor,
    seed: Tensor, longest: int, reach: int, p: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of queries, keys and values, each [T, A, D]."""
    _, heads, width = q_TAD.shape
    itemsize, groups = q_TAD.element_size(), (len(bounds) - 1) * heads
    gradients = (q_TAD.new_empty(q_TAD.shape), k_TAD.new_empty(k_TAD.shape), v_TAD.new_empty(v_TAD.shape))
    delta_AT = torch.empty_like(lse_AT)
    pointers = (q_TAD, k_TAD, v_TAD, out_TAD, lse_AT, d_TAD.contiguous(), *gradients, delta_AT, bounds, seed)
    numbers = _numbers(q_TAD, k_TAD, v_TAD, reach, p)
    blocks = blocks_for("keys", width, longest, itemsize)
    whole = longest <= blocks.keys
    if not whole:
        by_query = blocks_for("queries", width, longest, itemsize)
        grid = (groups, triton.cdiv(longest, by_query.queries))
        _attention_backward_queries[grid](*pointers, *numbers, **_constants(by_query, width, reach, p))
    grid = (groups, triton.cdiv(longest, blocks.keys))
    _attention_backward_keys[grid](*pointers, *numbers, **_constants(blocks, width, reach, p), WHOLE=whole)
    return gradients


@attention_backward.register_fake
def _(d_TAD, q_TAD, k_TAD, v_TAD, out_TAD, lse_AT, bounds, seed, longest, reach, p):
    return tuple(x.new_empty(x.shape) for x in (q_TAD, k_TAD, v_TAD))


def _numbers(q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, reach: int, p: float) -> tuple[int | float, ...]:
    """The kernels' arguments after their pointers."""
    tokens, heads, width = q_TAD.shape
    strides = (stride for x in (q_TAD, k_TAD, v_TAD) for stride in x.stride()[:2])
    return *strides, tokens, heads, reach, width**-0.5 / _LN2.value, *threshold_of(p)


def _constants(blocks: Blocks, width: int, reach: int, p: float) -> dict[str, Any]:
    """The constants that the kernels are compiled for."""
    return {
        "WIDTH": width,
        "BLOCK_D": max(16, triton.next_power_of_2(width)),
        "BLOCK_Q": blocks.queries,
        "BLOCK_K": blocks.keys,
        "WINDOW": reach >= 0,
        "DROPOUT": p > 0,
        "num_warps": blocks.warps,
        "num_stages": blocks.stages,
    }


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q_TAD, k_TAD, v_TAD, bounds, seed, *ctx.rest = inputs
    ctx.save_for_backward(q_TAD, k_TAD, v_TAD, *output, bounds, seed)


def _differentiate(ctx: Any, d_TAD: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *attention_backward(d_TAD, *ctx.saved_tensors, *ctx.rest), None, None, None, None, None


attention_forward.register_autograd(_differentiate, setup_context=_keep)


def attention(q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, sequences: Sequences, mask: Mask) -> Tensor:
    """Attention within each sequence, [T, A, D], with weights dropped by the `mask`."""
    q_TAD, k_TAD, v_TAD = (x if x.stride(-1) == 1 else x.contiguous() for x in (q_TAD, k_TAD, v_TAD))
    bounds, longest, reach = sequences
    out_TAD, _ = attention_forward(
        q_TAD, k_TAD, v_TAD, bounds, mask.seed, longest, -1 if reach is None else reach, mask.p
    )
    return out_TAD


def plain_attention(q_TAD: Tensor, k_TAD: Tensor, v_TAD: Tensor, sequences: Sequences, mask: Mask) -> Tensor:
    """The same in plain torch, [T, A, D], one sequence at a time, with the same mask."""
    bounds, longest, reach = sequences
    lengths, heads, out = bounds.diff().tolist(), q_TAD.shape[1], []
    parts = zip(*(x.split(lengths) for x in (q_TAD, k_TAD, v_TAD)), strict=True)
    for sequence, (q, k, v) in enumerate(parts):
        place = torch.arange(len(q), device=q.device)
        far = (place[:, None] - place).abs() > (longest if reach is None else reach)
        scores = torch.einsum("qad,kad->aqk", q, k) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(far, -torch.inf).softmax(-1)
        if mask.p:
            groups = range(sequence * heads, (sequence + 1) * heads)
            weights = weights * torch.stack([plain_factors(mask, place, group, place) for group in groups])
        out.append(torch.einsum("aqk,kad->qad", weights, v))
    return torch.cat(out)
