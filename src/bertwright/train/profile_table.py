"""Formats a profile as a table: milliseconds per step by part, and by purpose of the operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch.autograd import DeviceType  # type: ignore[attr-defined]

STEP, FORWARD, BACKWARD, REDUCE, UPDATE = (
    f"bertwright: {part}" for part in ("step", "forward", "backward", "sum and clip", "update")
)

_GROUPS = (
    ("loss", ("crossentropy", "log_softmax")),
    ("attention", ("attention", "bmm", "softmax")),
    ("dropout", ("dropout", "random_", "bernoulli")),
    ("matrix products", ("addmm", "aten::mm", "aten::linear", "aten::matmul")),
    ("layer norms", ("layer_norm", "layernorm")),
    ("activation", ("gelu", "tanh")),
    ("embeddings and selecting tokens", ("embedding", "index", "gather", "scatter")),
)
"""Operator groups by purpose: the first group matches whose substring occurs in the name of the operator or a
caller."""
_REST = {
    "cpu": "the rest (losses, reading the batch, sums over ranks)",
    "cuda": "the rest (waiting for the GPU, sums over ranks)",
}
"""What the host does outside the labelled parts of a step, by device."""


def table(events: list[Any], steps: int, waited: float, device: str) -> str:
    """Return a table of milliseconds per step and shares, by part of a step and by purpose of operators.

    Parts are measured by host clock. Operators are measured by self time, without the operators they call; on a GPU, by
    the time of the kernels that they start.
    """
    # A GPU's own events repeat what these hold: each kernel that an operator started, and each labelled range.
    events = [event for event in events if event.device_type == DeviceType.CPU]
    spans = [event.time_range for event in events if event.name == STEP]
    whole = sum(span.end - span.start for span in spans) / 1e3 + waited * 1e3
    parts = {"waiting for data": waited * 1e3}
    for name in (FORWARD, BACKWARD, REDUCE, UPDATE):
        inside = sum(event.time_range.end - event.time_range.start for event in events if event.name == name)
        parts[name.removeprefix("bertwright: ")] = inside / 1e3
    parts[_REST[device]] = whole - sum(parts.values())
    operators: Counter[str] = Counter()
    for event in events:
        # Matched by time, not by caller: on a GPU the backward pass runs on a separate thread.
        if any(span.start <= event.time_range.start and event.time_range.end <= span.end for span in spans):
            own = event.self_device_time_total if device == "cuda" else event.self_cpu_time_total
            operators[_group(event)] += own / 1e3
    operators = +operators  # without the groups that took no time: on a GPU, Python starts no kernels
    total = sum(operators.values())
    lines = [f"{steps} steps, {whole / steps:,.1f} ms each", *_lines("part of a step", parts, whole, steps)]
    lines += _lines("operators", dict(operators.most_common()), total, steps)
    return "\n".join(lines) + "\n"


def _lines(title: str, times: Mapping[str, float], whole: float, steps: int) -> list[str]:
    rows = [f"{name:<54}{time / steps:>10,.2f}{time / (whole or 1):>8.1%}" for name, time in times.items()]
    return [f"{title:<54}{'ms':>10}{'share':>8}", *rows]


def _group(event: Any) -> str:
    """Return the purpose of an operator: its own name takes precedence over those of its callers."""
    if event.name.startswith("bertwright: "):
        return "between operators (Python)"
    callers = [event]
    while callers[-1].cpu_parent is not None:
        callers.append(callers[-1].cpu_parent)
    if any(caller.name in (REDUCE, UPDATE) for caller in callers):
        return "clipping and optimizer"
    for caller in callers:
        name = caller.name.lower()
        for group, parts in _GROUPS:
            if any(part in name for part in parts):
                return group
    return "other"
