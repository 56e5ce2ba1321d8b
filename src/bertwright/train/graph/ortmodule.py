"""Runs a network with ONNX Runtime (onnxruntime.training, last release 1.19.2); exports it once per shape, with a
separate graph for the backward pass.

Names carry shapes: B sequences, T tokens of all sequences together, P predictions, R rows, S their length, V
vocabulary.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from onnxruntime.training.ortmodule import DebugOptions, LogLevel, ORTModule
from torch import Tensor, nn

from bertwright.core.files import write_atomic
from bertwright.model.batch import PackedBatch
from bertwright.model.pretraining import PreTrainingModel

_FALLBACK = "ORTMODULE_FALLBACK_POLICY"
INPUTS = ("token_ids", "position_ids", "segment_ids", "cu_seqlens", "prediction_positions")
"""Fields of a batch that the network reads."""
OPSET = 17
"""ONNX operator set version, also for the forward and backward passes."""


def by_onnx_runtime(model: nn.Module) -> nn.Module:
    """Return a module with the parameters of `model` whose passes ONNX Runtime runs; unsupported operations raise
    errors."""
    given = os.environ.get(_FALLBACK)
    # By default it would fall back to torch on failure, and only log a line.
    os.environ[_FALLBACK] = "FALLBACK_DISABLE"
    try:
        module = ORTModule(model, DebugOptions(log_level=LogLevel.ERROR))
    finally:
        if given is None:
            del os.environ[_FALLBACK]
        else:
            os.environ[_FALLBACK] = given
    for training in (True, False):
        _set_threads(module._torch_module._execution_manager(training))
    return module  # type: ignore[no-any-return]


def _set_threads(manager: Any) -> None:
    """Make the sessions of `manager` use as many threads as torch does."""
    made = manager._get_session_config

    def settings() -> tuple[Any, ...]:
        options, *providers = made()
        options.intra_op_num_threads = torch.get_num_threads()
        return options, *providers

    # There is no option for it, and the default is all cores, on each rank.
    manager._get_session_config = settings


class OrtNetwork(nn.Module):
    """A network that takes batches of full rows (`examples.padding.in_rows`) and whose passes ONNX Runtime runs."""

    def __init__(self, network: PreTrainingModel) -> None:
        super().__init__()
        self.network = network
        self.graphs = nn.ModuleDict()

    def forward(self, batch: PackedBatch) -> tuple[Tensor, Tensor | None]:
        """As `PreTrainingModel.forward`: logits [P, V] and [B, 2], or None."""
        rows, (sequences, _, predictions) = len(batch.cu_rows) - 1, batch.counts
        # Sizes are exported as constants, so each combination of sizes needs a separate graph.
        shape = f"{rows} rows of {batch.max_row}, {sequences} sequences, {predictions} predictions"
        if shape not in self.graphs:
            self.graphs[shape] = by_onnx_runtime(FullRows(self.network, rows, batch.max_row).train(self.training))
        # Dropout uses ONNX Runtime's own generator: seed it with the step's torch seed.
        onnxruntime.set_seed(torch.initial_seed() % 2**63)
        with quiet():
            logits = self.graphs[shape](*(getattr(batch, name) for name in INPUTS))
        return (logits[0], logits[1]) if self.network.nsp is not None else (logits[0], None)

    def write(self, path: Path, batch: PackedBatch) -> None:
        """Write the network with its current weights, without dropout, as ONNX for batches of the sizes of `batch`."""
        rows, file, was_training = len(batch.cu_rows) - 1, io.BytesIO(), self.network.training
        inputs = tuple(getattr(batch, name) for name in INPUTS)
        try:
            with quiet():
                torch.onnx.export(
                    FullRows(self.network, rows, batch.max_row).eval(),
                    inputs,
                    file,  # type: ignore[arg-type]
                    opset_version=OPSET,
                    input_names=list(INPUTS),
                    output_names=["masked_logits", "next_sentence_logits"][: 1 + (self.network.nsp is not None)],
                )
        finally:
            self.network.train(was_training)
        write_atomic(path, file.getvalue())


class FullRows(nn.Module):
    """The same network as a function of tensors, for R full rows of S tokens, as exporters require."""

    def __init__(self, network: PreTrainingModel, rows: int, length: int) -> None:
        super().__init__()
        self.network, self.rows, self.length = network, rows, length

    def forward(
        self,
        token_ids: Tensor,
        position_ids: Tensor,
        segment_ids: Tensor,
        cu_seqlens: Tensor,
        prediction_positions: Tensor,
    ) -> tuple[Tensor, ...]:
        """Return logits [P, V] and, if there is a next-sentence head, [B, 2]; inputs are three tensors [T], then [B +
        1] and [P]."""
        none = torch.zeros(0)
        batch = PackedBatch(
            token_ids=token_ids,
            position_ids=position_ids,
            segment_ids=segment_ids,
            cu_seqlens=cu_seqlens,
            cu_rows=torch.arange(self.rows + 1, dtype=torch.int32) * self.length,
            max_row=self.length,
            prediction_positions=prediction_positions,
            labels=none,
            weights=none,
            sequence_labels=none,
            sequence_weights=none,
        )
        masked_PV, pairs_B2 = self.network(batch)
        return (masked_PV,) if pairs_B2 is None else (masked_PV, pairs_B2)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the exporter's warnings that sizes become constants, which is intended here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
