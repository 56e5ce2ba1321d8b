"""Measures one side of a case of benchmarks/gpu.py, and shows what was measured."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from bertwright.train.monitor.profiler import STEP, times_by_purpose
from gpu_cases import PEER, Item
from gpu_peer import peer_steps
from gpu_sides import Steps, our_steps

MATMUL = 8192
"""Side of the square matrices whose product measures the peak rate of a GPU."""
WARM_UP = 2
"""Steps that compile and fill caches."""
PROFILED = 2


@dataclass(frozen=True)
class Measured:
    """The measurements of one side on one case: medians over the timed steps."""

    case: str
    side: str
    sequences: float
    """Per second."""
    tokens: float
    """Real tokens per second."""
    teraflops: float
    """10^12 operations of the model (`bertwright.model.flops`) per second, without padding."""
    share: float
    """`teraflops` over the measured rate of matrix products."""
    gigabytes: float
    """Peak device memory that torch reserved, with the pools of CUDA graphs."""
    step_ms: float
    """Milliseconds of a step."""
    first_step: float
    """Seconds from an empty process to the end of the first step, without imports."""
    kinds: dict[str, float] = field(default_factory=dict)
    """Milliseconds of a profiled step by purpose; empty if it was not profiled."""


def steps_of(item: Item, device: torch.device) -> Steps:
    """The steps of a side."""
    return peer_steps(item.case, device) if item.side.peer else our_steps(item.case, item.side, device)


def first_step(item: Item, device: torch.device) -> float:
    """Seconds that building the network and its first step take: what compiles, compiles."""
    began = time.perf_counter()
    steps = steps_of(item, device)
    next(steps)
    _finish(device)
    took = time.perf_counter() - began
    steps.close()
    return took


def measure(item: Item, device: torch.device, peak: float, number: int, profiled: bool) -> Measured:
    """Medians over `number` steps, after `WARM_UP` steps, and the table of `PROFILED` further ones if requested."""
    gpu = device.type == "cuda"
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    steps = steps_of(item, device)
    next(steps)
    _finish(device)
    first = time.perf_counter() - began
    for _ in range(WARM_UP - 1):
        next(steps)
    rates, seconds = [], []
    for _ in range(number):
        _finish(device)
        began = time.perf_counter()
        amounts = next(steps)
        _finish(device)
        seconds.append(time.perf_counter() - began)
        rates.append([amount / seconds[-1] for amount in amounts])
    sequences, tokens, flops = (statistics.median(column) for column in zip(*rates, strict=True))
    # Reserved, because a replayed graph uses its pool without allocating from it.
    memory = torch.cuda.max_memory_reserved() / 1e9 if gpu else 0.0
    kinds = _profile(steps, device) if profiled else {}
    steps.close()
    return Measured(
        item.case.name,
        item.side.name,
        sequences,
        tokens,
        flops / 1e12,
        flops / 1e12 / peak,
        memory,
        1e3 * statistics.median(seconds),
        first,
        kinds,
    )


def _profile(steps: Steps, device: torch.device) -> dict[str, float]:
    """Milliseconds of a step by purpose."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    with profile(activities=activities) as profiler:
        for _ in range(PROFILED):
            with record_function(STEP):
                next(steps)
        _finish(device)
    times = times_by_purpose(list(profiler.events() or []), device.type)
    return {kind: ms / PROFILED for kind, ms in times.items()}


def clear(device: torch.device) -> None:
    """Undo everything a side leaves behind: networks, compiled code, recorded graphs, and the choice of attention."""
    gc.collect()
    torch.backends.cuda.enable_cudnn_sdp(True)
    if device.type == "cuda":
        torch.compiler.reset()
        gc.collect()
        torch.cuda.empty_cache()


def _finish(device: torch.device) -> None:
    wait: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()


def matmul_rate(device: torch.device, side: int) -> float:
    """10^12 operations per second of products of two square matrices: bfloat16 on a GPU, float32 on a CPU."""
    low = torch.bfloat16 if device.type == "cuda" else torch.float32
    a, b = (torch.randn(side, side, device=device, dtype=low) for _ in range(2))
    times = []
    for _ in range(12):
        _finish(device)
        began = time.perf_counter()
        a @ b
        _finish(device)
        times.append(time.perf_counter() - began)
    return 2 * side**3 / statistics.median(times[2:]) / 1e12


def rates_table(rows: list[Measured], cold: dict[str, float]) -> str:
    """The measurements as a Markdown table, with each side's speed relative to the peer. `cold`: seconds to the first
    step with empty caches, by case and side; that of the row itself is with full ones then."""
    peers = {row.case: row for row in rows if row.side == PEER}
    lines = [
        "| case | side | sequences/s | real tokens/s | TFLOP/s | of products | GB | first step, s | times the peer |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        times = f"{row.tokens / peers[row.case].tokens:.2f}" if row.case in peers else ""
        before = cold.get(f"{row.case}, {row.side}")
        first = f"{row.first_step:.0f} cold" if before is None else f"{before:.0f} cold, {row.first_step:.0f} warm"
        figures = (
            f"{row.sequences:,.0f} | {row.tokens:,.0f} | {row.teraflops:.1f} | {row.share:.0%} | {row.gigabytes:.1f}"
        )
        lines.append(f"| {row.case} | {row.side} | {figures} | {first} | {times} |")
    return "\n".join(lines)


def kinds_table(rows: list[Measured]) -> str:
    """Where the time of a step goes, of every profiled side: milliseconds by purpose, as a Markdown table."""
    rows = [row for row in rows if row.kinds]
    totals = {kind: sum(row.kinds.get(kind, 0.0) for row in rows) for row in rows for kind in row.kinds}
    kinds = sorted(totals, key=lambda kind: -totals[kind])
    lines = [f"| ms a step | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}"]
    for row in rows:
        times = " | ".join(f"{row.kinds.get(kind, 0.0):,.1f}" for kind in kinds)
        lines.append(f"| {row.case}, {row.side} | {times} |")
    return "\n".join(lines) if rows else ""
