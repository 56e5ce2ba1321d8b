"""A network that ONNX Runtime computes, in the place of one of torch: it takes packed batches and returns the same
tensors, so everything that reads a network's output serves both.

Sequences of similar lengths are padded to the longest of them, because a graph has no packed batches.

Names carry shapes: B sequences, L places of each, T tokens of all sequences together, N tokens that are read, H hidden,
P predictions, C classes, V vocabulary.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.export.onnx.model import ENDS, HIDDEN, IDS, LOGITS, MASK, SEGMENTS
from bertwright.export.runtimes.members import runtime_named
from bertwright.export.runtimes.onnx_runtime import OnnxRuntime, write_onnx
from bertwright.export.runtimes.runtime import Published
from bertwright.model.batch import PackedBatch
from bertwright.model.classifier import Classifier
from bertwright.model.config import NetworkConfig, stock_network
from bertwright.model.config_file import read_config_file
from bertwright.model.importers.members import find_weights
from bertwright.model.interop.names import head_in, labels_in, task_in
from bertwright.model.interop.vector_files import gives_unit_means
from bertwright.model.model import HeadlessModel
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder, load_model, load_tokenizer
from bertwright.vocab.tokenizer import read_tokenizer

_STEP = 16
"""Lengths are alike that need as many multiples of this."""


class Graph:
    """An ONNX model, open in ONNX Runtime."""

    def __init__(self, file: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        # Threads that wait would take the cores from the event loop.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._inputs = [given.name for given in self._session.get_inputs()]
        self.outputs = [output.name for output in self._session.get_outputs()]
        last = self._session.get_outputs()[0].shape[-1]
        self.classes = last if isinstance(last, int) else 0
        """The columns of its first output."""

    def rows(self, batch: PackedBatch, name: str) -> NDArray[np.float32]:
        """An output for each token, [T, H], [T, V] or [T, C]."""
        found: NDArray[np.float32] | None = None
        for spans, outputs in self._runs(batch, [name]):
            for (start, end), row in zip(spans, outputs[name], strict=True):
                if found is None:
                    found = np.zeros((len(batch.token_ids), *row.shape[1:]), np.float32)
                found[start:end] = row[: end - start]
        assert found is not None, "a batch has sequences"
        return found

    def sequences(self, batch: PackedBatch, name: str) -> NDArray[np.float32]:
        """An output for each sequence, [B, C]."""
        starts = {start: number for number, start in enumerate(batch.cu_seqlens[:-1].tolist())}
        found: dict[int, NDArray[np.float32]] = {}
        for spans, outputs in self._runs(batch, [name]):
            found |= {starts[start]: row for (start, _), row in zip(spans, outputs[name], strict=True)}
        return np.stack([found[number] for number in range(len(starts))])

    def _runs(
        self, batch: PackedBatch, names: list[str]
    ) -> Iterator[tuple[list[tuple[int, int]], Mapping[str, NDArray[Any]]]]:
        """Yield the bounds of sequences of similar lengths, and outputs for them."""
        ids_T, segments_T = batch.token_ids.numpy(), batch.segment_ids.numpy()
        spans = sorted(pairwise(batch.cu_seqlens.tolist()), key=lambda span: span[1] - span[0])
        for _, alike in groupby(spans, key=lambda span: -(-(span[1] - span[0]) // _STEP)):
            some = list(alike)
            shape = (len(some), max(end - start for start, end in some))
            given = {name: np.zeros(shape, np.int64) for name in (IDS, MASK, SEGMENTS)}
            for row, (start, end) in enumerate(some):
                given[IDS][row, : end - start] = ids_T[start:end]
                given[SEGMENTS][row, : end - start] = segments_T[start:end]
                given[MASK][row, : end - start] = 1
            taken = {name: self._shaped(given[name]) for name in self._inputs}
            yield some, dict(zip(names, self._session.run(names, taken), strict=True))

    def _shaped(self, rows_BL: NDArray[np.int64]) -> NDArray[np.int64]:
        # Of a choice, a text is one of several in a row.
        several = len(self._session.get_inputs()[0].shape) == 3
        return rows_BL[:, None] if several else rows_BL


class _States(nn.Module):
    """The encoder of a graph, see `bertwright.model.encoder.Encoder`."""

    def __init__(self, graph: Graph, token_VH: Tensor | None) -> None:
        super().__init__()
        self.graph = graph
        self.token = None if token_VH is None else nn.Parameter(token_VH, requires_grad=False)

    @property
    def token_weight(self) -> Tensor:
        """As `Encoder.token_weight`."""
        if self.token is None:
            raise RecipeError("this model has no weights but its ONNX file, so its embeddings are not known.")
        return self.token

    def forward(self, batch: PackedBatch, read_N: Tensor | None = None) -> Tensor:
        """The hidden states [T, H], or those of the tokens `read_N` [N, H]."""
        if HIDDEN not in self.graph.outputs:
            raise RecipeError("the ONNX file of this model gives the logits of its task, and no vectors.")
        hidden_TH = torch.from_numpy(self.graph.rows(batch, HIDDEN))
        return hidden_TH if read_N is None else hidden_TH[read_N]


class OnnxPreTraining(PreTrainingModel):
    """A network with its head for masked tokens."""

    def __init__(self, config: NetworkConfig, graph: Graph, token_VH: Tensor | None) -> None:
        nn.Module.__init__(self)
        self.config, self.graph, self.nsp = config, graph, None
        self.add_module(config.family, _States(graph, token_VH))

    def forward(self, batch: PackedBatch) -> tuple[Tensor, Tensor | None]:
        """Logits [P, V] of the masked tokens, and none of the sequences."""
        logits_TV = self.graph.rows(batch, LOGITS)
        return torch.from_numpy(logits_TV[batch.prediction_positions.numpy()]), None


class OnnxClassifier(Classifier):
    """A network with the head of a task."""

    def __init__(self, config: NetworkConfig, graph: Graph, token_VH: Tensor | None) -> None:
        nn.Module.__init__(self)
        self.config, self.graph = config, graph
        self.add_module(config.family, _States(graph, token_VH))
        self._device = nn.Parameter(torch.zeros(0), requires_grad=False)  # by which others know where it is

    def forward(self, batch: PackedBatch) -> Tensor:
        """As `Classifier.forward`, [B, C], [P, C] or [T, C]."""
        match self.config.head:
            case "token":
                return torch.from_numpy(self.graph.rows(batch, LOGITS))[batch.prediction_positions]
            case "span":
                return torch.from_numpy(np.stack([self.graph.rows(batch, end) for end in ENDS], -1))
        return torch.from_numpy(self.graph.sequences(batch, LOGITS))


class OnnxHeadless(HeadlessModel):
    """A network without a head."""

    def __init__(self, config: NetworkConfig, graph: Graph, token_VH: Tensor | None) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.add_module(config.family, _States(graph, token_VH))


class Opened(NamedTuple):
    """A model that ONNX Runtime computes."""

    encoder: Encoder
    lacks: tuple[str, ...]
    """What it cannot be asked, because its graph has no such output."""


def open_onnx(path: Path, name: str) -> Opened:
    """The model of a run or a folder in the runtime `name`: from its ONNX file if it has one, else from one that is
    written for this, from its weights. Raises `RecipeError` if it has neither, or the runtime is not installed."""
    runtime = runtime_named(name)
    if not isinstance(runtime, OnnxRuntime):
        raise RecipeError(f"--runtime {name}: models are served by torch, onnx, onnx-fp16 and onnx-int8.")
    if why := runtime.missing():
        raise MissingExtraError(f"--runtime {name}: {why}.")
    written = next((file for file in _files(path, runtime) if file.is_file()), None)
    given = load_model(path) if has_weights(path) else None
    if given is None and written is None:
        raise RecipeError(f"{path} has neither weights nor {_files(path, runtime)[0].relative_to(path)}.")
    with TemporaryDirectory() as folder:
        file = written or Path(folder) / runtime.file
        if written is None:
            write_onnx(Published(path), file, runtime.precision)
        graph = Graph(file)
    config = _config_of(path, graph) if given is None else given.config
    token_VH = None if given is None else given.encoder.token_weight.detach().clone()
    lacks = [*(["neighbours"] if token_VH is None else []), *([] if HIDDEN in graph.outputs else ["encode", "similar"])]
    tokenizer = load_tokenizer(path) if given is not None else read_tokenizer(path / "tokenizer.json")
    return Opened(Encoder.of(_network(config, graph, token_VH), tokenizer), tuple(lacks))


def written_runtime(path: Path) -> str:
    """The first runtime whose file a folder without weights has; "" if there is none, or the folder has weights."""
    runtimes = (runtime_named(name) for name in ("onnx", "onnx-fp16", "onnx-int8"))
    if has_weights(path):
        return ""
    return next((each.name for each in runtimes if (path / each.folder / each.file).is_file()), "")


def has_weights(path: Path) -> bool:
    """Whether there is more of a model than an ONNX file: a run, or a folder with weights."""
    return (path / "recipe.toml").is_file() or (path / MANIFEST).is_file() or find_weights(path) is not None


def _files(path: Path, runtime: OnnxRuntime) -> list[Path]:
    """Where an ONNX file may be: in the folder, or in what the run has exported."""
    return [folder / runtime.folder / runtime.file for folder in (path, path / "hf", path / "export" / "hf")]


def _config_of(path: Path, graph: Graph) -> NetworkConfig:
    """The network of a folder that has a config.json, and no weights."""
    settings = read_config_file(path / "config.json")
    config = stock_network(settings, path / "config.json")
    if task := task_in(settings):
        head = head_in(settings, task)
        labels = labels_in(settings, head, graph.classes)
        return config.model_copy(update={"head": head, "labels": labels})
    return config.model_copy(update={"head": "vector"}) if gives_unit_means(path) else config


def _network(
    config: NetworkConfig, graph: Graph, token_VH: Tensor | None
) -> OnnxPreTraining | OnnxClassifier | OnnxHeadless:
    if config.labels:
        return OnnxClassifier(config, graph, token_VH)
    if config.predicts_tokens and LOGITS in graph.outputs:
        return OnnxPreTraining(config, graph, token_VH)
    return OnnxHeadless(config, graph, token_VH)
