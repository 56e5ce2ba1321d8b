"""The built-in sample: a small bilingual wiki made by this project, as a MediaWiki export in multistream bzip2.

Hand-written Hungarian and English pages contain the markup of real dumps; generated pages follow rules that a small
model can demonstrably learn (agreement, vowel harmony, facts of an invented world). The generator is not installed; it
is in `tools/sample/` of the repository.
"""

from __future__ import annotations

from pathlib import Path

SAMPLE = Path(__file__).parent / "wiki.xml.bz2"
"""The full export: about 1400 pages with 2 MB of plain text, three fifths of it Hungarian."""

SMALL = Path(__file__).parent / "small.xml.bz2"
"""The hand-written pages and every fourteenth generated one, for end-to-end tests."""

LABELLED = Path(__file__).parent / "cola"
"""Invented acceptable and unacceptable English sentences in the layout of GLUE's CoLA, for runs at tiny scale."""
