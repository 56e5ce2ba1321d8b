"""llama.cpp: the hidden states of BERT, DistilBERT and ModernBERT from a GGUF file, with its own tokenizer.

Its server, inside the package xllamacpp, listens on 127.0.0.1 while a file is open.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bertwright.core.errors import ArtifactError, DataError, MissingExtraError
from bertwright.core.files import read_bytes
from bertwright.core.json_values import parse_json
from bertwright.export.runtimes.llama_cpp_converter import (
    convert,
    full_attention_every,
    layer_types,
    missing_sources,
)
from bertwright.export.runtimes.llama_cpp_words import explain, unsupported
from bertwright.export.runtimes.runtime import Outputs, Published, Runtime
from bertwright.vocab.config import MAX_FILE
from bertwright.vocab.entries import TextSettings, text_settings

FAMILIES = ("bert", "distilbert", "modernbert")


class LlamaCpp(Runtime):
    """llama.cpp with weights of the given kind.

    Even with f32 it rounds the activation of a BERT or DistilBERT to half precision: its GELU on a CPU is a table of
    65,536 values, filled by the approximation with tanh. ModernBERT's is exact.
    """

    package = "xllamacpp"
    needs = ("transformers",)
    install = "pip install 'bertwright[llama-cpp]'"
    rounds = True

    def __init__(self, weights: Literal["f32", "f16", "q8_0"] = "f32") -> None:
        self.weights, self.title = weights, f"llama.cpp, {weights}"
        self.name = self.folder = self.reads = "gguf" if weights == "f32" else f"gguf-{weights.removesuffix('_0')}"
        self.file = f"model-{weights.upper()}.gguf"  # as files of this kind are usually named

    def version(self) -> str:
        """The version of the package, and of llama.cpp."""
        number = super().version()
        return number and f"{number} (llama.cpp b{_build(number)})"

    def missing_to_write(self) -> str:
        """As `Runtime.missing_to_write`: its converter, too, which no package installs."""
        return self.missing() or missing_sources()

    def refusal(self, model: Published) -> str:
        """It has no heads, and one kind of each network."""
        if model.family not in FAMILIES:
            return f"llama.cpp computes {', '.join(FAMILIES)}, not {model.family or 'this one'}"
        if model.head not in ("encoder", "masked"):
            return f"llama.cpp computes hidden states and their mean, so a {model.architecture} would lose its head"
        if reason := _network(model):
            return reason
        tokenizer = _tokenizer(model.folder / "tokenizer.json")
        # Published ModernBERTs have BPE, and those that it knows are in the converter's list.
        if tokenizer is None or (model.family == "modernbert" and tokenizer.get("model", {}).get("type") == "BPE"):
            return ""
        return (
            f"llama.cpp has BERT's tokenizer only, and this one {reason}" if (reason := unsupported(tokenizer)) else ""
        )

    def write(self, model: Published, out: Path) -> None:
        """Write the file, with mean pooling unless the folder says otherwise.

        Raises `MissingExtraError` without the package or the converter, and `ArtifactError` if the model cannot be
        converted.
        """
        if lacking := self.missing_to_write():
            raise MissingExtraError(lacking)
        if reason := self.refusal(model):
            raise ArtifactError(f"{model.folder} cannot be converted: {reason}")
        convert(model, out / self.file, self.weights)

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[_Reader]:
        """Start its server on the file."""
        reader = _Reader(out / self.file, model.positions, threads)
        try:
            yield reader
        finally:
            reader.close()

    def explain(self, model: Published, text: str) -> str:
        """As `Runtime.explain`."""
        settings = text_settings(model.folder) or TextSettings(False, False)
        return explain(text, settings, _build(super().version()))


def _build(version: str) -> int:
    """llama.cpp's build is the third number of the package's version."""
    numbers = version.split(".")
    return int(numbers[2]) if len(numbers) > 2 and numbers[2].isdigit() else 0


def _tokenizer(path: Path) -> Any:
    try:
        return parse_json(read_bytes(path, MAX_FILE)) if path.is_file() else None
    except ValueError as error:
        raise ArtifactError(f"cannot read {path}: {error}. Restore the file.") from error


def _network(model: Published) -> str:
    """Why llama.cpp cannot compute this network, or computes it otherwise; "" if it can."""
    config = model.config
    key = {"bert": "hidden_act", "distilbert": "activation", "modernbert": "hidden_activation"}[model.family]
    # Those with tanh are what its table of GELU has; and a ModernBERT's gate is this or that.
    known = ("gelu", "silu") if model.family == "modernbert" else ("gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast")
    if config.get(key, "gelu") not in known:
        return f"llama.cpp has the {key} {' or '.join(known)} in this network, not {config[key]!r}"
    if config.get("position_embedding_type", "absolute") != "absolute":
        return f"llama.cpp has absolute positions only, not {config['position_embedding_type']!r}"
    if model.family == "modernbert":
        for bias in ("attention_bias", "mlp_bias", "norm_bias"):
            if config.get(bias):
                return f"llama.cpp's ModernBERT has no biases, and this one has {bias}"
        if full_attention_every(layer_types(dict(config))) is None:
            return "llama.cpp's ModernBERT has full attention in layer 0 and each n-th layer after it; this one has not"
    return ""


class _Reader:
    """A server, restarted with more room when a text is longer: its buffers grow with the square of the positions."""

    def __init__(self, file: Path, positions: int, threads: int) -> None:
        self._file, self._positions, self._threads = file, positions, threads
        self._start(min(positions, 512))

    def ids(self, text: str) -> list[int]:
        answer = self._ask("/tokenize", {"content": text, "add_special": True, "parse_special": True})
        ids: list[int] = answer["tokens"]
        return ids if len(ids) <= self._positions else [*ids[: self._positions - 1], ids[-1]]

    def run(self, text: str) -> Outputs:
        ids = self.ids(text)
        if len(ids) > self._room:
            self.close()
            self._start(min(self._positions, 1 << (len(ids) - 1).bit_length()))
        (answer,) = self._ask("/embeddings", {"content": ids})
        hidden_TH = np.array(answer["embedding"], np.float32)
        return {"hidden": hidden_TH, "vector": hidden_TH.mean(0)}

    def close(self) -> None:
        """End the server."""
        self._connection.close()
        del self._server

    def _start(self, room: int) -> None:
        import xllamacpp

        settings = xllamacpp.CommonParams()
        settings.model.path = str(self._file)
        settings.embedding = True
        settings.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_NONE
        # Flash attention would round keys and values to half precision.
        settings.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        settings.n_gpu_layers = 0
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = self._threads
        settings.n_parallel = 1
        settings.n_ctx = settings.n_batch = settings.n_ubatch = self._room = room
        settings.warmup = False
        settings.verbosity = 0
        try:
            self._server = xllamacpp.Server(settings)
        except RuntimeError as error:
            raise ArtifactError(f"llama.cpp cannot load {self._file}: {error}") from error
        host, port = self._server.listening_address.removeprefix("http://").rsplit(":", 1)
        self._connection = HTTPConnection(host, int(port))

    def _ask(self, path: str, question: dict[str, str | bool | Sequence[int]]) -> Any:
        try:
            answer = self._exchange(path, question)
        except ConnectionError:  # the server closes a connection on which nothing was asked for five seconds
            self._connection.close()
            answer = self._exchange(path, question)
        if isinstance(answer, dict) and "error" in answer:
            raise DataError(f"llama.cpp cannot read this text: {answer['error'].get('message')}")
        return answer

    def _exchange(self, path: str, question: dict[str, str | bool | Sequence[int]]) -> Any:
        self._connection.request("POST", path, json.dumps(question), {"Content-Type": "application/json"})
        return json.loads(self._connection.getresponse().read())
