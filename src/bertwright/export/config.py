"""The knobs of export. Knows no torch."""

from __future__ import annotations

from pydantic import Field

from bertwright.core.config import Section, runtime_only

VERSION = 4
"""Raised when the code of the stage changes its result."""


class ExportConfig(Section):
    """The Hugging Face folder."""

    name: str = Field("bertwright", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the model in its card."""
    tolerance: float = runtime_only(1e-4, gt=0)
    """Largest difference allowed between our logits and those of the reloaded folder; more is an error."""


def sections(config: ExportConfig, texts: Section | None) -> dict[str, Section]:
    """The settings that the folder is a function of; `texts` are those on the texts where no corpus says it."""
    return {"export": config, **({"texts": texts} if texts else {})}
