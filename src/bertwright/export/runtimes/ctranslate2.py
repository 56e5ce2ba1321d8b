"""CTranslate2: the hidden states of BERT and DistilBERT, with weights in float32 or int8."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bertwright.core.errors import ArtifactError, MissingExtraError
from bertwright.export.runtimes.hugging_face import load_encoder
from bertwright.export.runtimes.runtime import Outputs, Published, Runtime

ACTIVATIONS = ("gelu", "gelu_fast", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu", "silu", "swish")
"""What its converter knows, by the names in config.json."""


class CTranslate2(Runtime):
    """CTranslate2 with weights of the given kind."""

    package = "ctranslate2"
    needs = ("transformers",)
    file = "model.bin"
    install = "pip install 'bertwright[ctranslate2]'"

    def __init__(self, weights: Literal["float32", "int8"] = "float32") -> None:
        self.weights, self.rounds = weights, weights != "float32"
        self.name = self.folder = self.reads = "ctranslate2-int8" if self.rounds else "ctranslate2"
        self.title = "CTranslate2, int8" if self.rounds else "CTranslate2"

    def refusal(self, model: Published) -> str:
        """It has converters for two families, without heads."""
        if model.family not in ("bert", "distilbert"):
            return f"CTranslate2 has converters for BERT and DistilBERT, but none for {model.family or 'this network'}"
        if model.head not in ("encoder", "masked"):
            return f"CTranslate2 computes hidden states only, so a {model.architecture} would lose its head"
        activation = model.config.get("hidden_act" if model.family == "bert" else "activation", "gelu")
        if activation not in ACTIVATIONS:
            return f"CTranslate2 does not know the activation {activation!r}, only {', '.join(ACTIVATIONS)}"
        positions = model.config.get("position_embedding_type", "absolute")
        if positions != "absolute":
            return f"CTranslate2 has absolute positions only, not {positions!r}"
        return ""

    def write(self, model: Published, out: Path) -> None:
        """Write model.bin, config.json, vocabulary.json, and the tokenizer, which CTranslate2 leaves to its users.

        Raises `MissingExtraError` without the package, and `ArtifactError` if the folder cannot be converted.
        """
        if lacking := self.missing():
            raise MissingExtraError(lacking)
        if reason := self.refusal(model):
            raise ArtifactError(f"{model.folder} cannot be converted: {reason}")
        encoder, tokenizer = load_encoder(model.folder)
        try:
            # The folder exists, which it takes for an older model unless told to.
            _converter(encoder, tokenizer).convert(str(out), quantization=self.weights, force=True)
        except (ValueError, RuntimeError, KeyError) as error:
            raise ArtifactError(f"CTranslate2 cannot convert {model.folder}: {error}") from error
        tokenizer.backend_tokenizer.save(str(out / "tokenizer.json"))

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[_Reader]:
        """Open the encoder on the CPU."""
        import ctranslate2
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(model.positions)
        encoder = ctranslate2.Encoder(str(out), device="cpu", compute_type=self.weights, intra_threads=threads)
        try:
            yield _Reader(tokenizer, encoder)
        finally:
            encoder.unload_model()


@dataclass(frozen=True)
class _Reader:
    tokenizer: Any
    encoder: Any

    def ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids

    def run(self, text: str) -> Outputs:
        hidden_TH = np.array(self.encoder.forward_batch([self.ids(text)]).last_hidden_state)[0]
        return {"hidden": hidden_TH, "vector": hidden_TH.mean(0)}


def _converter(encoder: Any, tokenizer: Any) -> Any:
    """CTranslate2's own converter, for a loaded encoder."""
    from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc]
        def load_model(self, model_class: Any, name: str, **settings: Any) -> Any:
            return encoder

        def load_tokenizer(self, tokenizer_class: Any, name: str, **settings: Any) -> Any:
            return tokenizer

    # Its converter asks for what transformers 5 no longer has. Others than this are refused before.
    if encoder.config.model_type == "bert":
        encoder.config.position_embedding_type = "absolute"
    return Converter(encoder.config.name_or_path)
