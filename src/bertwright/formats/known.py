"""All known formats. To add one: a module or folder beside this file, an entry in a tuple here, a name in `Kind`."""

from __future__ import annotations

from bertwright.formats import lddl, megatron
from bertwright.formats.datasets import documents as rows
from bertwright.formats.datasets import examples as datasets
from bertwright.formats.format import DocumentFormat, Format, Kind
from bertwright.formats.hdf5 import padded, varlen
from bertwright.formats.tfrecord import examples as tfrecord

# LDDL comes before datasets, which claims every other Parquet file.
FORMATS: tuple[Format, ...] = (padded.FORMAT, varlen.FORMAT, tfrecord.FORMAT, lddl.FORMAT, datasets.FORMAT)
"""Formats of finished examples, in the order in which they are tried on a file."""
DOCUMENT_FORMATS: tuple[DocumentFormat, ...] = (megatron.FORMAT, rows.FORMAT)
"""Formats of tokenised documents, tried after those of examples."""

_FORMATS = {known.kind: known for known in FORMATS}
_DOCUMENT_FORMATS = {known.kind: known for known in DOCUMENT_FORMATS}


def holds_examples(kind: Kind) -> bool:
    """Whether this kind has a format of examples (not only one of token documents)."""
    return kind in _FORMATS


def format_of(kind: Kind) -> Format:
    """Return the format of examples of this kind, which must exist."""
    return _FORMATS[kind]


def document_format_of(kind: Kind) -> DocumentFormat | None:
    """Return the format of token documents of this kind; None if its files hold only examples."""
    return _DOCUMENT_FORMATS.get(kind)
