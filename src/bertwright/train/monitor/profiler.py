"""Profiles some steps of a training with torch's profiler, as a trace and as a table of milliseconds per step.

They are normal training steps, only slower: their updates count, and the final weights are the same. The wrappers that
label parts in the trace are used only for these steps and cost nothing otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile, record_function

from bertwright.core.errors import BertwrightError
from bertwright.core.files import make_folder, write_atomic
from bertwright.core.log import Log
from bertwright.model.batch import PackedBatch
from bertwright.tasks.objective import Objective
from bertwright.tasks.terms import Counted, Summed
from bertwright.train.engine.chosen_rows import Rows
from bertwright.train.engine.engine import Engine, Root
from bertwright.train.setup.trainee import Trainee

WARM_UP = 2
"""Steps of a start before the first profiled one: compilers, caches and first use of memory."""


class StepProfiler:
    """Profiles `steps` steps of a start after `WARM_UP` steps, and writes a trace and a table into `folder`."""

    def __init__(self, steps: int, folder: Path, device: torch.device, log: Log) -> None:
        self._left, self._folder, self._device, self._log = steps, folder, device, log
        self._until, self._done, self._waited = WARM_UP, 0, 0.0
        self._profile: Any = None

    @contextmanager
    def step(self, trainee: Trainee, waited: float) -> Iterator[Trainee]:
        """Yield what to train one step with; `waited`: the seconds spent waiting for its batch."""
        if not self._left or self._until:
            self._until -= self._until > 0
            yield trainee
            return
        if self._profile is None:
            gpu = [ProfilerActivity.CUDA] if self._device.type == "cuda" else []
            self._profile = profile(activities=[ProfilerActivity.CPU, *gpu])
            self._profile.__enter__()
        with record_function(STEP):
            yield replace(trainee, objective=_Objective(trainee.objective), engine=_Engine(trainee.engine))
            if self._device.type == "cuda":  # else remaining work would be counted in the next step
                torch.cuda.synchronize(self._device)
        self._waited += waited
        self._left, self._done = self._left - 1, self._done + 1
        if not self._left:
            self.close()

    def close(self) -> None:
        """Write the profile, if not yet done; log a warning if no step was profiled or writing fails."""
        finished, self._profile, self._left = self._profile, None, 0
        try:
            if finished is not None:
                finished.__exit__(None, None, None)
            if finished is not None and self._done:
                self._write(finished)
        # A trace is only for inspection: a full disk or a GPU library must not end training because of it.
        except (OSError, RuntimeError, BertwrightError) as error:
            self._log.say(
                f"warning: the profile could not be written ({type(error).__name__}: {error}). Training goes on."
            )
        if not self._done:
            self._log.say(
                f"warning: no step was profiled: this start took fewer than {WARM_UP + 1}, and the first {WARM_UP} "
                "are only a warm-up."
            )

    def _write(self, finished: Any) -> None:
        trace = make_folder(self._folder) / "trace.json"
        finished.export_chrome_trace(str(trace))
        text = table(list(finished.events()), self._done, self._waited, self._device.type)
        write_atomic(self._folder / "table.txt", text.encode())
        self._log.say(f"train: {text.rstrip()}\nThe trace for chrome://tracing or ui.perfetto.dev: {trace}")


@dataclass(frozen=True)
class _Objective:
    """An objective whose forward passes are labelled in a trace."""

    inner: Objective

    @property
    def counted(self) -> Mapping[str, Counted]:
        return self.inner.counted

    def terms(self, model: nn.Module, batch: PackedBatch) -> Mapping[str, Summed]:
        with record_function(FORWARD):
            return self.inner.terms(model, batch)


@dataclass(frozen=True)
class _Root:
    """A backward pass that is labelled in a trace."""

    inner: Root

    def backward(self) -> None:
        with record_function(BACKWARD):
            self.inner.backward()


@dataclass(frozen=True)
class _Engine:
    """An engine whose methods are labelled in a trace."""

    inner: Engine

    @property
    def has_full_weights(self) -> bool:
        return self.inner.has_full_weights

    def root(self, loss: Tensor, last: bool = True) -> Root:
        return _Root(self.inner.root(loss, last))

    def reduce(self, loss_scale: float = 1.0) -> Tensor:
        with record_function(REDUCE):
            return self.inner.reduce(loss_scale)

    def update(self, learning_rate: float) -> None:
        with record_function(UPDATE):
            self.inner.update(learning_rate)

    def restart_steps(self) -> None:
        self.inner.restart_steps()

    def train_rows(self, rows: Rows | None) -> None:
        self.inner.train_rows(rows)

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return self.inner.gather(own)

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        self.inner.load(moments, weights)


STEP, FORWARD, BACKWARD, REDUCE, UPDATE = (
    f"bertwright: {part}" for part in ("step", "forward", "backward", "sum and clip", "update")
)

_GROUPS = (
    ("loss", ("crossentropy", "cross_entropy", "log_softmax", "logsoftmax", "nll_loss")),
    ("attention", ("attention", "flash", "fmha", "dot_do_o", "convert_dq", "bmm", "softmax")),
    ("layer norms", ("layer_norm", "layernorm", "gammabeta", "rms_norm")),
    ("activation", ("gelu", "tanh", "geglu")),
    ("clipping and optimizer", ("multi_tensor", "fused_adam", "lpnorm")),
    (
        "matrix products",
        ("addmm", "aten::mm", "aten::linear", "aten::matmul", "nvjet", "gemm", "cutlass", "splitk", "fused_mm"),
    ),
    ("dropout", ("dropout", "random_", "bernoulli", "distribution")),
    ("embeddings and selecting tokens", ("embedding", "index", "gather", "scatter", "rotary", "rotate")),
)
"""Operators and kernels of GPUs by purpose: the first group matches whose substring occurs in the name of the operator
or a caller. Compilers name a kernel after all operations in it: what it reduces over comes first."""
_COPIES = ("memcpy", "memset", "copy_kernel", "batchedcopy", "fillfunctor")
"""Kernels that only move numbers or write constants. Names of kernels that convert too, next to other work, contain
copies as well, so this is asked last."""
_REST = {
    "cpu": "the rest (losses, reading the batch, sums over ranks)",
    "cuda": "the rest (waiting for the GPU, sums over ranks)",
}
"""What the host does outside the labelled parts of a step, by device."""


def table(events: list[Any], steps: int, waited: float, device: str) -> str:
    """Return a table of milliseconds per step and shares, by part of a step and by purpose of operators or kernels.

    Parts are measured by host clock; the rest is that of `times_by_purpose`.
    """
    hosts = [event for event in events if event.device_type == DeviceType.CPU]
    whole = sum(span.end - span.start for span in _spans(hosts, STEP)) / 1e3 + waited * 1e3
    parts = {"waiting for data": waited * 1e3}
    for name in (FORWARD, BACKWARD, REDUCE, UPDATE):
        inside = sum(span.end - span.start for span in _spans(hosts, name))
        parts[name.removeprefix("bertwright: ")] = inside / 1e3
    parts[_REST[device]] = whole - sum(parts.values())
    purposes = times_by_purpose(events, device)
    lines = [f"{steps} steps, {whole / steps:,.1f} ms each", *_lines("part of a step", parts, whole, steps)]
    title = "kernels" if device == "cuda" else "operators"
    lines += _lines(title, purposes, sum(purposes.values()), steps)
    return "\n".join(lines) + "\n"


def times_by_purpose(events: list[Any], device: str) -> dict[str, float]:
    """Return the milliseconds of all profiled steps together by purpose, the longest first.

    On a CPU: of operators, by self time, without the operators they call. On a GPU: of kernels, whatever started them,
    a replayed graph too, and of the time between the first and the last in which none ran (`IDLE`).
    """
    times = _kernel_times(events) if device == "cuda" else _operator_times(events)
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def _operator_times(events: list[Any]) -> dict[str, float]:
    spans = _spans(events, STEP)
    times: defaultdict[str, float] = defaultdict(float)
    for event in events:
        # Matched by time, not by caller: the backward pass may run on a separate thread.
        if any(span.start <= event.time_range.start and event.time_range.end <= span.end for span in spans):
            times[_operator_group(event)] += event.self_cpu_time_total / 1e3
    return times


def _kernel_times(events: list[Any]) -> dict[str, float]:
    on_gpu = [event for event in events if event.device_type != DeviceType.CPU]
    kernels = [e for e in on_gpu if not (e.is_user_annotation or e.name.startswith("bertwright: "))]
    updates = [*_spans(on_gpu, REDUCE), *_spans(on_gpu, UPDATE)]
    times: defaultdict[str, float] = defaultdict(float)
    until = 0.0
    for kernel in sorted(kernels, key=lambda kernel: float(kernel.time_range.start)):
        span = kernel.time_range
        updates_weights = any(one.start <= span.start and span.end <= one.end for one in updates)
        group = "clipping and optimizer" if updates_weights else _kernel_group(kernel.name)
        times[group] += (span.end - span.start) / 1e3
        times[IDLE] += max(0.0, span.start - (until or span.start)) / 1e3
        until = max(span.end, until)
    return times


IDLE = "idle"
"""Time in which a GPU computes nothing, because it waits for the host."""


def _spans(events: list[Any], name: str) -> list[Any]:
    return [event.time_range for event in events if event.name == name]


def _lines(title: str, times: Mapping[str, float], whole: float, steps: int) -> list[str]:
    rows = [f"{name:<54}{time / steps:>10,.2f}{time / (whole or 1):>8.1%}" for name, time in times.items()]
    return [f"{title:<54}{'ms':>10}{'share':>8}", *rows]


def _operator_group(event: Any) -> str:
    """Return the purpose of an operator: its own name takes precedence over those of its callers."""
    if event.name.startswith("bertwright: "):
        return "between operators (Python)"
    callers = [event]
    while callers[-1].cpu_parent is not None:
        callers.append(callers[-1].cpu_parent)
    if any(caller.name in (REDUCE, UPDATE) for caller in callers):
        return "clipping and optimizer"
    return next((group for caller in callers if (group := _group(caller.name))), "other")


def _kernel_group(name: str) -> str:
    """Return the purpose of a kernel of a GPU, by its name alone."""
    if group := _group(name):
        return group
    return "copies" if any(part in name.lower() for part in _COPIES) else "other"


def _group(name: str) -> str:
    return next((group for group, parts in _GROUPS if any(part in name.lower() for part in parts)), "")
