"""The built-in sample: a small bilingual wiki made by this project, as a MediaWiki export in multistream bzip2.

Hand-written Hungarian and English pages carry the markup of real dumps; generated ones follow rules a small model
can be seen to learn (agreement, vowel harmony, facts of a made-up world). What makes the files is not installed:
`tools/sample/` of the repository.
"""

from __future__ import annotations

from pathlib import Path

SAMPLE = Path(__file__).parent / "wiki.xml.bz2"
"""The full export: about 1400 pages, 2 MB of plain text, three fifths of it Hungarian."""

SMALL = Path(__file__).parent / "small.xml.bz2"
"""The hand-written pages and every fourteenth generated one, for tests of the whole road."""

LABELLED = Path(__file__).parent / "cola"
"""Sentences that are English and sentences that are not, invented, in the layout of GLUE's CoLA: for a tiny scale."""
