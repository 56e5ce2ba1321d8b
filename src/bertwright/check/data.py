"""What the data that phases bring along is, told by the beginnings of its files."""

from __future__ import annotations

from collections.abc import Iterator

from bertwright.check.verdict import Verdict, ok, raised, warning
from bertwright.core.errors import BertwrightError
from bertwright.train.config import TrainConfig


def data(train: TrainConfig) -> Iterator[Verdict]:
    """A verdict for each phase with data in a format of the field."""
    for each in train.foreign_data():
        from bertwright.examples.foreign_files import (
            find,
        )  # the formats need numpy, which a recipe without them does not

        key = f"{each.key}.data"
        try:
            found = find(each)
        except BertwrightError as cause:
            yield raised(key, cause)
            continue
        what = f"{'documents of ' if found.documents else ''}{found.kind}"
        number = "" if found.examples is None else f", {found.examples:,} examples"
        length = "" if found.shape.length is None else f", length {found.shape.length}"
        yield ok(key, f"{found.folder}: {what}, {len(found.files):,} files{number}{length}")
        if found.incomplete:
            yield warning(key, f"{found.folder} has {found.incomplete}.", "Fetch the others if they are wanted.")
