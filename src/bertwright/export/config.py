"""The settings of export, and its inputs. Does not import torch."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertwright.core.artifact import Artifact
from bertwright.core.config import Section, ShownText, runtime_only
from bertwright.export.hub_terms import LICENCES, NAME
from bertwright.model.config import NetworkConfig

VERSION = 11
"""Incremented when the code of the stage changes its result."""


Format = Literal[
    "onnx",
    "onnx-fp16",
    "onnx-int8",
    "openvino",
    "ctranslate2",
    "ctranslate2-int8",
    "gguf",
    "gguf-f16",
    "gguf-q8",
    "static",
    "spacy",
]
"""The runtimes that files are written for."""


_OF_ENCODERS: tuple[Format, ...] = ("ctranslate2", "ctranslate2-int8", "gguf", "gguf-f16", "gguf-q8", "static")


def unwritable(name: Format, network: NetworkConfig) -> str:
    """Why a format cannot hold a network, as far as its configuration tells; "" if it can."""
    if name in _OF_ENCODERS and network.labels:
        return f"{name} has no heads, so a network for {network.head} classification would lose what it learned"
    if name == "spacy" and (network.head != "token" or not network.labels):
        return "spacy is for taggers of words"
    if name in ("spacy", "ctranslate2", "ctranslate2-int8") and network.family == "modern":
        return f"{name} has no ModernBERT"
    return ""


class ExportConfig(Section):
    """The Hugging Face folder."""

    name: str = Field("bertwright", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the model in its model card."""
    licence: ShownText = Field("", pattern=r"^([a-z0-9][a-z0-9.+-]*)?$")
    """The licence under which you publish the model, for its card: an identifier of the hub, such as `cc-by-sa-4.0`, or
    a name of your own with `licence_link`. Empty: the card grants none."""
    licence_link: ShownText = Field("", pattern=r"^(https?://\S+)?$")
    """Address of the text of a licence that is not one of the hub's."""
    base_model: str = Field("", pattern=rf"^({NAME})?$")
    """Name on the hub of the network that training started from, such as `google-bert/bert-base-cased`, for the card.
    Empty: the card names it if the network is in the cache of huggingface_hub."""
    datasets: tuple[Annotated[str, Field(pattern=rf"^{NAME}$")], ...] = ()
    """Names on the hub of the data sets whose texts the model was trained on, for the card."""
    formats: tuple[Format, ...] = ()
    """What else is written beside the files of transformers, each for a runtime: ONNX in float32, float16 or int8
    (`onnx/`), OpenVINO (`openvino/`), llama.cpp (`gguf/`), CTranslate2 (`ctranslate2/`), a table of word vectors as
    model2vec reads it (`static/`), a spaCy pipeline (`spacy/`)."""
    certify: bool = False
    """Whether held-out sentences are answered in every runtime that is installed and compared before the folder is
    sealed; the table stands in the model card and the report. Takes about a minute a runtime for a base size."""
    tolerance: float = runtime_only(1e-4, gt=0)
    """Largest allowed difference between our logits and those of the reloaded folder, as a share of the largest logit
    where that is above 1; a larger one is an error."""

    @model_validator(mode="after")
    def _licence_has_a_text(self) -> Self:
        if self.licence and self.licence not in LICENCES and not self.licence_link:
            near = difflib.get_close_matches(self.licence, LICENCES, n=3)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(
                f"licence {self.licence!r} is not one of the hub's identifiers{meant} For a licence of your own, give "
                "the address of its text too (licence_link)"
            )
        if self.licence_link and (not self.licence or self.licence in LICENCES):
            raise ValueError("licence_link is the text of a licence of your own: name that licence (licence)")
        return self


@dataclass(frozen=True)
class Inputs:
    """The artifacts that the folder and its model card are built from."""

    train: Artifact
    vocab: Artifact
    evaluate: Artifact
    source: Artifact
    """The corpus, or the examples if there is no corpus."""

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of the artifacts, by stage name."""
        by_field = {name: artifact.fingerprint for name, artifact in vars(self).items()}
        # `source` is known by its stage, corpus or examples, as in the identity of the export.
        return {str(self.source.manifest["stage"]): by_field.pop("source"), **by_field}


def sections(config: ExportConfig, texts: Section | None) -> dict[str, Section]:
    """The settings that determine the folder; `texts` describes the texts if there is no corpus to do so."""
    return {"export": config, **({"texts": texts} if texts else {})}
