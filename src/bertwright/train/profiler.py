"""Profiles some steps of a training with torch's profiler.

They are normal training steps, only slower: their updates count, and the final weights are the same. The wrappers that
label parts in the trace are used only for these steps and cost nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, record_function

from bertwright.core.errors import BertwrightError
from bertwright.core.files import make_folder, write_atomic
from bertwright.core.log import Log
from bertwright.model.batch import PackedBatch
from bertwright.objectives.objective import Objective
from bertwright.objectives.term import Counted, Summed
from bertwright.train.engine.engine import Engine, Root
from bertwright.train.profile_table import BACKWARD, FORWARD, REDUCE, STEP, UPDATE, table
from bertwright.train.trained import Trained

WARM_UP = 2
"""Steps of a start before the first profiled one: compilers, caches and first use of memory."""


class StepProfiler:
    """Profiles `steps` steps of a start after `WARM_UP` steps, and writes a trace and a table into `folder`."""

    def __init__(self, steps: int, folder: Path, device: torch.device, log: Log) -> None:
        self._left, self._folder, self._device, self._log = steps, folder, device, log
        self._until, self._done, self._waited = WARM_UP, 0, 0.0
        self._profile: Any = None

    @contextmanager
    def step(self, trained: Trained, waited: float) -> Iterator[Trained]:
        """Yield what to train one step with; `waited`: the seconds spent waiting for its batch."""
        if not self._left or self._until:
            self._until -= self._until > 0
            yield trained
            return
        if self._profile is None:
            gpu = [ProfilerActivity.CUDA] if self._device.type == "cuda" else []
            self._profile = profile(activities=[ProfilerActivity.CPU, *gpu])
            self._profile.__enter__()
        with record_function(STEP):
            yield replace(trained, objective=_Objective(trained.objective), engine=_Engine(trained.engine))
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
    def whole(self) -> bool:
        return self.inner.whole

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

    def gather(self, own: bool = False) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return self.inner.gather(own)

    def load(self, moments: Mapping[str, Tensor], weights: Mapping[str, Tensor] | None = None) -> None:
        self.inner.load(moments, weights)
