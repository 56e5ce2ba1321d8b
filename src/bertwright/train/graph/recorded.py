"""The forward and backward pass of a micro-batch, recorded as a CUDA graph and replayed.

A replay starts all kernels of a pass with one call of the host: those of the network, the loss and the backward pass,
and those that add its gradients. Every tensor of a recording keeps its place, so a batch is copied into the recorded
one, and gradients are added to tensors that are set to zero, never replaced. Dropout draws from torch's generator as it
is seeded at the time of the replay, so a replay drops what the pass itself would drop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from bertwright.core.log import Log
from bertwright.model.batch import PackedBatch
from bertwright.train.config import TrainConfig
from bertwright.train.engine.engine import Engine
from bertwright.train.engine.single import Single
from bertwright.train.graph.config import CompiledConfig


@dataclass(frozen=True)
class Scales:
    """The numbers of a step that its passes compute with: Python numbers, or scalars on the device."""

    divisors: Mapping[str, float | Tensor]
    """What the sum of each term is divided by, by name."""
    loss: float | Tensor = 1.0
    """What the loss is multiplied by for the backward pass, a scalar."""


class Run(Protocol):
    """A forward and backward pass of a micro-batch, of which the host reads nothing (`step.run_pass`)."""

    def __call__(self, batch: PackedBatch, scales: Scales, /) -> Tensor:
        """Run it, adding to the gradients; returns sums [S]."""


@dataclass(frozen=True)
class Pass:
    """A pass, and what it depends on besides its batch."""

    run: Run
    gradients: list[Tensor]
    """The gradients that it adds to, of any shapes."""
    seed: Callable[[], None]
    """Seeds dropout."""


@dataclass(frozen=True)
class Inputs:
    """What differs between two passes of one recording."""

    batch: PackedBatch
    numbers: Tensor
    """[D + 1] float32: the divisors, and the factor of the loss."""

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, of any shapes, in a fixed order."""
        values = (getattr(self.batch, each.name) for each in fields(self.batch))
        return [self.numbers, *(value for value in values if isinstance(value, Tensor))]

    @property
    def shape(self) -> object:
        """What inputs of one recording have in common."""
        return self.batch.max_row, *((tensor.shape, tensor.dtype) for tensor in self.tensors)

    def run(self, own: Pass, names: Iterable[str]) -> Tensor:
        """Run a pass on these inputs, with divisors of these names; returns its sums [S]."""
        *divisors, loss = self.numbers.unbind()
        return own.run(self.batch, Scales(dict(zip(names, divisors, strict=True)), loss))


class Recording(Protocol):
    """A recorded pass."""

    def replay(self, given: Inputs) -> Tensor:
        """Return the sums [S] for inputs of the same shape; they are valid until the next replay."""


class WrongRecordingError(Exception):
    """A pass cannot be recorded, or its recording computes something else."""


class Recorder:
    """Keeps the recording of one shape: that of the current phase."""

    def __init__(
        self, engine: Single, log: Log, record: Callable[[Pass, list[str], Inputs], Recording] | None = None
    ) -> None:
        self._engine, self._log, self._record = engine, log, record or record_cuda_graph
        self._began: object = None
        """The shape with which the last step began."""
        self._shape: object = None
        """The shape of the recording."""
        self._recording: Recording | None = None
        self._failed = False

    def begin_step(self, run: Run, seed: Callable[[], None], batch: PackedBatch, scales: Scales) -> None:
        """Record the pass `run` if two steps in a row begin with micro-batches of one shape; gradients are zero
        afterwards. `seed` seeds dropout.

        The first step of a shape compiles kernels, and a shape that occurs once is not worth a recording. Raises
        `torch.cuda.OutOfMemoryError` if memory runs out.
        """
        given = _inputs(batch, scales)
        before, self._began = self._began, given.shape
        if self._failed or before != self._began or self._shape == self._began:
            return
        self._recording = self._shape = None  # frees its memory before the next one takes as much
        try:
            own = Pass(run, self._engine.gradients(), seed)
            self._recording, self._shape = self._record(own, list(scales.divisors), given), given.shape
        except WrongRecordingError as error:
            self._failed = True
            self._log.say(
                f"train: the passes of a step are not replayed as a CUDA graph, because {error}. The host starts each "
                "kernel instead: the results are the same, but small networks are slower"
            )

    def forget(self) -> None:
        """Drop the recording, because other weights get gradients from now on."""
        self._recording = self._shape = self._began = None

    def replay(self, batch: PackedBatch, scales: Scales) -> Tensor | None:
        """Return the sums [S] of a replayed pass; None if there is no recording of this shape."""
        if self._recording is None:
            return None
        given = _inputs(batch, scales)
        return self._recording.replay(given) if given.shape == self._shape else None


def build_recorder(config: TrainConfig, engine: Engine, device: torch.device, log: Log) -> Recorder | None:
    """Return a recorder if the recipe's passes can be recorded: compiled ones on a GPU, without an engine that sends
    gradients while a pass runs, without layers that are computed again, which saves the generator's state, and with a
    loss that a micro-batch has by itself."""
    graph, again = config.graph, config.checkpoint_activations
    records = isinstance(graph, CompiledConfig) and graph.cuda_graphs and device.type == "cuda" and not again
    records = records and not config.objective.compares_sequences
    return Recorder(engine, log) if records and isinstance(engine, Single) else None


def _inputs(batch: PackedBatch, scales: Scales) -> Inputs:
    device = batch.token_ids.device
    numbers = torch.tensor([*scales.divisors.values(), scales.loss], dtype=torch.float32)
    if device.type == "cuda":  # the host would wait for a copy from memory that is not pinned
        numbers = numbers.pin_memory()
    return Inputs(batch, numbers.to(device, non_blocking=True))


@dataclass(frozen=True)
class _CudaGraph:
    graph: torch.cuda.CUDAGraph
    inputs: Inputs
    sums: Tensor

    def replay(self, given: Inputs) -> Tensor:
        copy_inputs(self.inputs, given)
        self.graph.replay()
        return self.sums


def copy_inputs(kept: Inputs, given: Inputs) -> None:
    """Copy inputs into those of a recording, of the same shape."""
    for own, other in zip(kept.tensors, given.tensors, strict=True):
        own.copy_(other, non_blocking=True)


_TOLERANCE = 1e-2
"""Difference between a replay and the pass itself, of sums and of gradient norms, relative to the largest of them.
Kernels that add in any order differ by less, a recording that misses something by more."""


def record_cuda_graph(own: Pass, names: list[str], given: Inputs) -> Recording:
    """Record a pass on a GPU, and compare its replay with the pass itself; gradients are zero afterwards.

    `names`: those of the divisors. Raises `WrongRecordingError` if the results differ or CUDA cannot record the pass,
    and `torch.cuda.OutOfMemoryError` if memory runs out.
    """
    kept, gradients = Inputs(given.batch.map(Tensor.clone), given.numbers.clone()), own.gradients

    def results(run: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
        torch._foreach_zero_(gradients)
        own.seed()
        return run().clone(), torch.stack(torch._foreach_norm(gradients))

    # On a stream of its own: a recording must not depend on work outside of it.
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        expected = results(lambda: kept.run(own, names))
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    own.seed()
    try:
        # Of this thread alone: another one may pin the next batch meanwhile.
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            sums = kept.run(own, names)
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise WrongRecordingError(f"CUDA reports {str(error).splitlines()[0]!r}") from error
    recording = _CudaGraph(graph, kept, sums)
    found = results(lambda: recording.replay(given))
    torch._foreach_zero_(gradients)
    off = max(map(_difference, found, expected))
    if not off <= _TOLERANCE:
        raise WrongRecordingError(f"a replay differs from the pass itself by {off:.1%}")
    return recording


def _difference(found: Tensor, expected: Tensor) -> float:
    """The largest difference of numbers, of the same shape, relative to the largest of them; equal if both are NaN."""
    found, expected = (torch.nan_to_num(x.double()) for x in (found, expected))
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-30))
