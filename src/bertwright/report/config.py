"""The knobs of the report."""

from __future__ import annotations

from bertwright.core.config import Section

VERSION = 4
"""Raised when the code of the stage changes its result."""


class ReportConfig(Section):
    """The page that shows a run."""

    title: str = ""
    """Heading of the page; empty takes the name of the run folder."""


def sections(config: ReportConfig) -> dict[str, Section]:
    """The settings that the page is a function of."""
    return {"report": config}
