"""Our own kernels on one GPU, forward and backward, beside torch's compiler, FlashAttention and the floor of memory.

    python benchmarks/kernels.py [--tokens 65536] [NAME ...]

Sizes are those of BERT base at 128 tokens a sequence in bfloat16. The bytes of a floor are those that must be read or
written at least once. FlashAttention is measured without dropout of weights, which it lacks. This helps to decide
which kernels stay (docs/decisions/0065).
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import dropout, gelu, layer_norm

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from bertwright.model.kernels import attention, counter, norm
from bertwright.model.kernels import gelu as activation

LENGTH, HEADS, WIDTH, INNER = 128, 12, 64, 3072
HIDDEN = HEADS * WIDTH


Side = Callable[..., Tensor | tuple[Tensor, ...]]


class Case(NamedTuple):
    """Inputs, what is compared on them, and the numbers that a pass in each direction moves at least."""

    name: str
    shapes: list[tuple[int, ...]]
    sides: dict[str, Side]
    numbers: int


def cases(tokens: int, device: torch.device) -> Iterator[Case]:
    """One per kernel."""
    state, inner, heads = (tokens, HIDDEN), (tokens, INNER), (tokens, HEADS, WIDTH)
    mask, none = (counter.draw_mask(p, device) for p in (0.1, 0.0))
    bounds = torch.arange(0, tokens + 1, LENGTH, dtype=torch.int32, device=device)
    within = attention.Sequences(bounds, LENGTH)
    ours = {
        "ours": lambda *x: attention.attention(*x, within, none),
        "ours, dropout 0.1": lambda *x: attention.attention(*x, within, mask),
    }
    yield Case("attention", [heads] * 3, {**ours, "FlashAttention": flash(bounds)}, 12 * tokens * HIDDEN)
    small = [(HIDDEN,), state, (HIDDEN,), (HIDDEN,)]
    by_torch = torch.compile(lambda x, b, r, w, s: layer_norm(r + dropout(x + b, 0.1), (HIDDEN,), w, s, 1e-12))
    by_us = lambda x, b, r, w, s: norm.add_norm(x, b, r, norm.Norm(w, s, 1e-12), mask)  # noqa: E731
    yield Case("norm", [state, *small], {"ours": by_us, "compiled": by_torch}, 8 * tokens * HIDDEN)
    compiled = torch.compile(lambda x, b: gelu(x + b))
    yield Case(
        "bias and GELU", [inner, (INNER,)], {"ours": activation.bias_gelu, "compiled": compiled}, 5 * tokens * INNER
    )


def flash(bounds: Tensor) -> Side:
    """FlashAttention over the same sequences."""
    from torch.nn.attention.varlen import varlen_attn

    return lambda q, k, v: varlen_attn(q, k, v, bounds, bounds, LENGTH, LENGTH)


def passes(side: Side, inputs: list[Tensor]) -> None:
    """A pass in each direction."""
    found = side(*inputs)
    outputs = found if isinstance(found, tuple) else (found,)
    torch.autograd.grad(outputs, inputs, [torch.ones_like(out) for out in outputs])


def milliseconds(side: Side, shapes: list[tuple[int, ...]], repeats: int) -> float:
    """The median time of a pass in each direction, on inputs that no cache holds any more."""
    inputs = [torch.randn(shape, device="cuda", dtype=torch.bfloat16).requires_grad_() for shape in shapes]
    other, times = torch.empty(2**28, dtype=torch.int8, device="cuda"), []
    for _ in range(repeats):
        other.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        passes(side, inputs)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[repeats // 4 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of cases' names; default: all")
    parser.add_argument("--tokens", type=int, default=65_536)
    parser.add_argument("--repeats", type=int, default=24)
    parser.add_argument("--bandwidth", type=float, default=3.35, help="of the GPU's memory, TB/s")
    given = parser.parse_args()
    for case in cases(given.tokens, torch.device("cuda")):
        if given.names and not case.name.startswith(tuple(given.names)):
            continue
        floor = 2 * case.numbers / given.bandwidth / 1e9
        for name, side in case.sides.items():
            took = milliseconds(side, case.shapes, given.repeats)
            print(
                f"{case.name:24}{name:20}{took:8.3f} ms{floor / took:8.0%} of the floor of {floor:.3f} ms", flush=True
            )


if __name__ == "__main__":
    main()
