"""The knobs of export. Knows no torch."""

from __future__ import annotations

from pydantic import Field

from bertwright.core.config import Section, runtime_only


class ExportConfig(Section):
    """The Hugging Face folder."""

    name: str = Field("bertwright", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the model in its card."""
    tolerance: float = runtime_only(1e-4, gt=0)
    """Largest difference allowed between our logits and those of the reloaded folder; more is an error."""
