"""The knobs of export, and what it reads. Knows no torch."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from bertwright.core.artifact import Artifact
from bertwright.core.config import Section, runtime_only

VERSION = 4
"""Raised when the code of the stage changes its result."""


class ExportConfig(Section):
    """The Hugging Face folder."""

    name: str = Field("bertwright", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the model in its card."""
    tolerance: float = runtime_only(1e-4, gt=0)
    """Largest difference allowed between our logits and those of the reloaded folder; more is an error."""


@dataclass(frozen=True)
class Inputs:
    """The artifacts that the folder and its model card are made of."""

    train: Artifact
    vocab: Artifact
    evaluate: Artifact
    source: Artifact
    """The corpus, or the examples where there is none."""

    @property
    def fingerprints(self) -> dict[str, str]:
        """Theirs, by the names of their stages."""
        by_field = {name: artifact.fingerprint for name, artifact in vars(self).items()}
        return {str(self.source.manifest["stage"]): by_field.pop("source"), **by_field}


def sections(config: ExportConfig, texts: Section | None) -> dict[str, Section]:
    """The settings that the folder is a function of; `texts` are those on the texts where no corpus says it."""
    return {"export": config, **({"texts": texts} if texts else {})}
