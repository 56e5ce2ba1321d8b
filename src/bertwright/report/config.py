"""Settings of the report."""

from __future__ import annotations

from bertwright.core.config import Section, ShownText

VERSION = 6
"""Incremented when a code change alters the stage's result."""


class ReportConfig(Section):
    """The page that shows a run."""

    title: ShownText = ""
    """Heading of the page; empty takes the name of the run folder."""


def sections(config: ReportConfig) -> dict[str, Section]:
    """The settings that the page depends on."""
    return {"report": config}
