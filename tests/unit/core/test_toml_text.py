"""TOML as it is written: the standard library reads the same values from it, and tomli-w writes the same text."""

import tomllib
from datetime import date, datetime, time
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.toml_text import toml_text
from bertwright.shipped import find_recipe

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PLAIN = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
SHIPPED = ("demo", "hungarian", "nvidia-large", "azure-glue", "ort-dgx2")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_what_is_written_is_read_again(values: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(values)) == values
    if "\t" not in repr(values) and "\\t" not in repr(values):  # written as \t here, and as it is there
        assert toml_text(values) == tomli_w.dumps(values)


@each_row("name", SHIPPED)
def test_recipes_look_as_before(name: str) -> None:
    written, resolved = (
        tomllib.loads(find_recipe(name).read_text()),
        Recipe.load(name, given=False).shown(exclude_none=True),
    )
    for values in (written, resolved):
        assert toml_text(values) == tomli_w.dumps(values)


def test_dates_are_written_and_what_toml_does_not_have_is_refused() -> None:
    values = {"a": [date(2024, 1, 2), datetime(2024, 1, 2, 3, 4), time(5, 6)]}
    assert tomllib.loads(toml_text(values)) == values
    with pytest.raises(TypeError, match="TOML has no value like None"):
        toml_text({"a": {"b": [None]}})
