"""All formats: a new one is a folder beside this file, a line in one of these tuples, and its name in `Kind`."""

from __future__ import annotations

from bertwright.formats.datasets import documents as rows
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.documents import DocumentFormat
from bertwright.formats.format import Format, Kind
from bertwright.formats.hdf5 import padded, varlen
from bertwright.formats.lddl import examples as lddl
from bertwright.formats.megatron import documents as megatron
from bertwright.formats.tfrecord import examples as tfrecord

# LDDL before datasets, which takes every other Parquet file for its own.
FORMATS: tuple[Format, ...] = (padded.FORMAT, varlen.FORMAT, tfrecord.FORMAT, lddl.FORMAT, datasets.FORMAT)
"""Formats of finished examples, in the order in which a file is tried."""
DOCUMENT_FORMATS: tuple[DocumentFormat, ...] = (megatron.FORMAT, rows.FORMAT)
"""Formats of tokenised documents, tried after those of examples."""

_FORMATS = {known.kind: known for known in FORMATS}
_DOCUMENT_FORMATS = {known.kind: known for known in DOCUMENT_FORMATS}


def holds_examples(kind: Kind) -> bool:
    """Whether there is a format of examples of this kind (not of token documents alone)."""
    return kind in _FORMATS


def format_of(kind: Kind) -> Format:
    """The format of examples of this kind; there must be one."""
    return _FORMATS[kind]


def document_format_of(kind: Kind) -> DocumentFormat | None:
    """The format of token documents of this kind; None where files of it hold examples alone."""
    return _DOCUMENT_FORMATS.get(kind)
