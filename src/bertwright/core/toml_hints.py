"""What to write in place of what is not TOML, if a habit from another language or a shell explains it."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

YAML = re.compile(r"^\s*([A-Za-z0-9_.\-]+)\s*:\s*(.*?)\s*$")
"""A key and its value as YAML has them."""
_PLAIN = re.compile(r"^\s*([A-Za-z0-9_.\-]+)\s*=\s*([^\"'\[{\s#][^#]*?)\s*(?:#.*)?$")
_TWICE = ("Cannot declare", "Cannot mutate", "Cannot overwrite", "Cannot redefine", "Duplicate")
"""How tomllib's errors about keys and sections that are given twice begin."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
_NULL = ("None", "none", "null", "~")
_WORDS = {"True": "true", "False": "false", "yes": "true", "no": "false", "on": "true", "off": "false"}


def remedy(text: str, fault: str) -> str:
    """What to do about an error of tomllib: what to write in the line, if a habit from another language explains it."""
    if fault.startswith(_TWICE):
        return "Give each key once, and all keys of a section in one place."
    line = re.search(r"at line (\d+)", fault)  # else at the end
    written = text.replace("\r\n", "\n").split("\n")[int(line[1]) - 1 if line else -1]
    # A line that is right by itself is read as the rest of a value that began before it.
    if _is_toml(written):
        return "A bracket, a brace or a quotation mark that is opened before is not closed. Close it."
    if yaml := YAML.match(written):
        value = re.sub(r"(?:^|\s)#.*", "", yaml[2]).rstrip()
        if not value:
            return f"Write a section as [{yaml[1]}]."
        advice = _advice(yaml[1], value)
        return f"This is TOML, not YAML: {advice[0].lower()}{advice[1:]}"
    if plain := _PLAIN.match(written):
        return _advice(*plain.groups())
    if "\\" in written:
        return "Put a text with backslashes in single quotes: '...'."
    return "Correct that line."


def listed(value: Any) -> str:
    """What to write for a single value, or a text such as `[hu, en]` or `0.9, 0.99`, where a list is wanted."""
    if not isinstance(value, str):
        return f"[{'' if value is None else str(value).lower()}]"
    words = (word.strip(" \"'") for word in value.strip("[] ").split(","))
    meant = ", ".join(word if _NUMBER.fullmatch(word) else json.dumps(word, ensure_ascii=False) for word in words)
    # Only a shell removes quotes inside brackets.
    return f"[{meant}]" + ", within single quotes in a shell" * value.startswith("[")


def _advice(key: str, value: str) -> str:
    """What to write for a key whose value was written as in YAML or Python."""
    if value in _NULL:
        return f"Leave {key} out: there is no null in TOML."
    # As a language code, `no` is Norwegian.
    value = value if key.endswith("language") else _WORDS.get(value, value)
    if _is_toml(f"value = {value}"):
        return f"Write {key} = {value}."
    if value[0] in "[{\"'":  # a list, a table or a text, in which something is wrong
        return "Correct that line."
    # In quotes, `30k` would be valid TOML, but no number.
    if value[0].isdigit():
        return f"Write the number {key} with digits alone, such as 30000, or put it in quotes if it is a text."
    return f"Write {key} = {json.dumps(value, ensure_ascii=False)}."


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):  # not TOML, or a number with thousands of digits
        return False
    return True
