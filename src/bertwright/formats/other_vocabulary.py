"""Compares the ids of a set of examples with a vocabulary, as far as the first examples of its first file show them.

Examples that were made with another vocabulary are wrong from the first one on, so the set need not be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from bertwright.core.errors import DataError
from bertwright.formats.errors import ShardError
from bertwright.formats.known import format_of
from bertwright.formats.recognise import FileSet
from bertwright.formats.special_ids import SpecialIds


def misfit(examples: FileSet, vocabulary: Sequence[str]) -> str:
    """Return which id of the first examples is not of `vocabulary`, with the file's name; "" if all are.

    Raises `ShardError` if the beginning of the file is damaged.
    """
    file, known = examples.files[0], format_of(examples.kind)
    # Without a vocabulary if possible: an id beyond it would be reported as damage of the file.
    blocks = known.read(file, vocabulary if known.reads_vocabulary else None)
    if (block := next(filter(len, blocks), None)) is None:
        return ""
    if (largest := max(block.token_ids.max(), block.labels.max(initial=0))) >= len(vocabulary):
        return f"{file} has id {largest:,}, but the vocabulary has {len(vocabulary):,} entries"
    special = SpecialIds(vocabulary)
    special.add(block)
    return next((f"{file}: {fault}" for fault in special.faults()), "")


def refuse_misfits(sets: Sequence[FileSet], vocabulary: Sequence[str] | None) -> None:
    """Raise `DataError` for the first set of examples that does not have the ids of `vocabulary`, if one is given."""
    if vocabulary is None:
        return
    for examples in sets:
        with suppress(ShardError):  # reported, or left out, where the whole file is read
            if not examples.documents and (fault := misfit(examples, vocabulary)):
                raise DataError(f"{fault}. The examples were made with another vocabulary: give their vocab.txt.")
