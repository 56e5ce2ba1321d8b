"""JSON from anywhere: what is too deep, too large or no number is a `ValueError`, whatever the parser would say."""

import json
import math
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.json_values import MAX_DEPTH, parse_json, refuse_depth


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@each_row("text", ["0", '""', "[]", "{}", "null", '{"híd": ["東京", -1.5, 18446744073709551615]}'])
def test_ordinary_values_are_those_of_the_library(text: str) -> None:
    assert parse_json(text) == parse_json(text.encode()) == json.loads(text)


@each_row("depth", [MAX_DEPTH + 2, 1_000, 200_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=f"nested deeper than {MAX_DEPTH} levels"):
        parse_json(nested(depth))


def test_the_deepest_allowed_value_is_read() -> None:
    assert json.dumps(parse_json(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    mixed: Any = 1
    for _ in range(MAX_DEPTH // 2):
        mixed = {"k": [mixed]}
    refuse_depth(mixed)
    with pytest.raises(ValueError, match="nested deeper"):
        refuse_depth([[mixed]])


@each_row("number", ["1" + "0" * 20, "-" + "9" * 30, "1" * 100_000, "1e999", "-1e999"])
def test_a_number_that_no_array_can_hold_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="is too large"):
        parse_json(f'{{"n": {number}}}')


def test_what_python_writes_of_nan_and_infinity_is_read() -> None:
    values = parse_json(json.dumps([math.nan, math.inf, -math.inf]))
    assert math.isnan(values[0]) and values[1:] == [math.inf, -math.inf]


def test_every_object_is_handed_on_the_innermost_first() -> None:
    seen: list[dict[str, Any]] = []
    assert parse_json('{"a": {"b": 1}}', lambda values: seen.append(values) or len(seen)) == 2
    assert seen == [{"b": 1}, {"a": 1}]


@each_row("text", ["", "{", "{'a': 1}", '"\\ud800', b"\xff\xfe", "nul"])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)
