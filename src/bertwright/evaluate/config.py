"""The settings of evaluation, and its inputs. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, field_validator

from bertwright.core.artifact import Artifact
from bertwright.core.config import Section, runtime_only
from bertwright.corpus.characters import compose
from bertwright.corpus.config import SourceConfig, as_sources
from bertwright.tasks.pretraining.config import GAP

VERSION = 8
"""Incremented when the code of the stage changes its result."""


class EvaluateConfig(Section):
    """Held-out scores and sample predictions."""

    length: int = Field(0, ge=0)
    """Length of the held-out sequences, in tokens; 0 uses that of the last phase."""
    mask_rate: float = Field(0.15, gt=0, lt=1)
    """Share of the held-out tokens that are masked, independent of training; runs with the same rate can be
    compared."""
    max_sequences: int = Field(0, ge=0)
    """Maximum number of held-out sequences to score, spread evenly over the split; 0 scores all."""
    general: tuple[SourceConfig, ...] = ()
    """Texts of another kind than those of training, to measure what a network forgets: a path, a table with a path and
    other keys of `corpus.source`, or a list of these. About 4 MB of each are read, without the documents that training
    read, and scored before training, if it starts from another network, and after it."""
    cloze: tuple[str, ...] = ()
    """Lines of text with one [MASK] or [MASK=expected word] each, shown with the model's five best words."""
    samples: int = Field(8, ge=0)
    """Number of held-out sentences shown with one masked word and the model's five best words."""
    batch: int = runtime_only(64, ge=1)
    """Sequences per forward pass."""
    device: Literal["auto", "cpu", "cuda"] = runtime_only("auto")
    """Where the model runs; `auto` uses a GPU if torch sees one."""

    @field_validator("general", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        return as_sources(value)

    @field_validator("general")
    @classmethod
    def _everything_is_used(cls, sources: tuple[SourceConfig, ...]) -> tuple[SourceConfig, ...]:
        if any(source.weight != 1.0 for source in sources):
            raise ValueError(
                "the weight of a source has no effect here, since nothing is trained on it: remove the key"
            )
        return sources

    @field_validator("cloze")
    @classmethod
    def _one_mask(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        for line in lines:
            if (gaps := len(GAP.findall(line))) != 1:
                raise ValueError(
                    f"{line!r} contains [MASK] {gaps} times; write it exactly once, in place of the word to predict"
                )
        return tuple(map(compose, lines))


@dataclass(frozen=True)
class Inputs:
    """The artifacts that the scores are computed from."""

    train: Artifact
    examples: Artifact
    vocab: Artifact

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of the artifacts, by name."""
        return {name: artifact.fingerprint for name, artifact in vars(self).items()}


def sections(config: EvaluateConfig, length: int) -> dict[str, Section]:
    """The settings that determine the scores; `length` (tokens) is that of the scored sequences."""
    return {"evaluate": config.model_copy(update={"length": length})}
