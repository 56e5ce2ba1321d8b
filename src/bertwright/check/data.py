"""What the data that phases bring along is, told by the beginnings of its files."""

from __future__ import annotations

from collections.abc import Iterator

from bertwright.check.verdict import Verdict, ok, raised, warning
from bertwright.core.errors import BertwrightError
from bertwright.recipe import Recipe


def data(recipe: Recipe) -> Iterator[Verdict]:
    """A verdict for each phase with data in a format of the field; without a corpus also on what of it is held out."""
    for each in recipe.train.imported_data():
        # The formats need numpy, which a recipe without them does not.
        from bertwright.formats.imported.phase_files import find, find_tests

        key = f"{each.key}.data"
        try:
            found = find(each)
            tests = () if recipe.corpus else find_tests(each, found)
        except BertwrightError as cause:
            yield raised(key, cause)
            continue
        what = f"{'documents of ' if found.documents else ''}{found.kind}"
        number = "" if found.examples is None else f", {found.examples:,} examples"
        length = "" if found.shape.length is None else f", length {found.shape.length}"
        yield ok(key, f"{found.folder}: {what}, {len(found.files):,} files{number}{length}")
        if found.incomplete:
            yield warning(key, f"{found.folder} has {found.incomplete}.", "Fetch the others if they are wanted.")
        if recipe.corpus is None:
            files = sum(len(test.files) for test in tests)
            held = f"{files:,} files for testing" if tests else f"examples.heldout={recipe.examples.heldout:g} of them"
            yield ok(key, f"held out: {held}")
