"""The settings of export, and its inputs. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from bertwright.core.artifact import Artifact
from bertwright.core.config import Section, runtime_only

VERSION = 7
"""Incremented when the code of the stage changes its result."""


class ExportConfig(Section):
    """The Hugging Face folder."""

    name: str = Field("bertwright", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the model in its model card."""
    tolerance: float = runtime_only(1e-4, gt=0)
    """Largest allowed difference between our logits and those of the reloaded folder, as a share of the largest logit
    where that is above 1; a larger one is an error."""


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
