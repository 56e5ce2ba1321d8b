"""Turns mistakes in a recipe into sentences: which value is wrong and why, and what is valid.

pydantic finds wrong values; each becomes `where: key: sentence`, with the nearest valid key or value and, for a number
out of bounds, the meaning of the field. A section of several kinds, such as an optimizer, may have a key of another
kind, or lack its kind. What is not TOML is explained by the habits of another language or of a shell.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from bertwright.core.addresses import is_secret
from bertwright.core.secrets import HIDDEN, secret_in
from bertwright.core.section_fields import field_at, is_model, kinds_with, members, plugins_at


def describe_other_kind(model: type[BaseModel], loc: Sequence[int | str], keys: Sequence[str]) -> str:
    """Which other kinds of its section have an unknown key, given its pydantic location; "" if none has it."""
    *above, name = keys
    kind = f"{'.'.join(above)}.kind"
    if not (kinds := kinds_with(field_at(model, loc[:-1])[2], (name,))):
        return ""
    # pydantic adds the kind of the section to the location.
    return f"is a key of {kind}={' or '.join(kinds)}, but {kind} is {loc[-2]}; set {kind}={kinds[0]}, or leave it out"


def missing_kind(field: FieldInfo | None, given: Collection[str]) -> str:
    """Which kinds a section with the given keys may have."""
    kinds = kinds_with(field, given) or kinds_with(field, ())
    return f"the key kind is missing; set it to {'one of ' * (len(kinds) > 1)}{', '.join(map(repr, kinds))}"


WhereIs = Callable[[type[BaseModel], str], str]
"""Says where a name that is not a key in its place is a key, as the end of a sentence; "" if nowhere."""
Lines = Mapping[str, int]
"""The line number of each dotted key; 0 is the command line."""

_INDEXED = re.compile(r"(\w+)\[(\d+)\]")
_BOUNDS = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "below {lt:g}",
    "less_than_equal": "{le:g} or less",
}
_TEXTS = {
    "finite_number": "be a finite number",
    "string_pattern_mismatch": "match the pattern {pattern}",
    "string_too_short": "have {min_length} or more characters",
    "string_too_long": "have {max_length} or fewer characters",
}
_TEXT_WANTED = ("string_type", "path_type")
_WRONG_TYPE = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": 'a text in quotes, such as "{value}"',
    "path": 'a path in quotes, such as "{value}"',
    "tuple": "a list, such as {listed}",
    "list": "a list, such as {listed}",
}


def validation_messages(
    model: type[BaseModel], error: ValidationError, file: str, lines: Lines, where_is: WhereIs | None = None
) -> str:
    """One line for each mistake in the values of a `model`: its location, the key, what is wrong, what is valid."""
    details = error.errors(include_url=False)
    # A list whose elements are wrong is also reported as too short; the errors of the elements say more.
    inner = [d["loc"][:n] for d in details for n in range(len(d["loc"]))]
    details = [d for d in details if d["type"] != "too_short" or d["loc"] not in inner]
    sentences: dict[str, list[tuple[bool, str]]] = {}
    for detail in details:
        keys, known, field = field_at(model, detail["loc"])
        dotted = ".".join(keys)
        sentence = _sentence(model, detail, keys, known, field, where_is)
        sentences.setdefault(dotted, []).append((detail["type"].endswith("_type"), sentence))
    # For a value of a union, keep the errors of the members whose type it matches, if there are any.
    kept = (
        (key, s) for key, all_of in sentences.items() for other, s in all_of if not other or all(o for o, _ in all_of)
    )
    return "\n".join(f"{locate(key, file, lines)}: {key or 'recipe'}: {sentence}" for key, sentence in kept)


def keys_of_text(model: type[BaseModel], error: ValidationError) -> set[str]:
    """The dotted keys that hold something else where text or a path is required."""
    details = error.errors(include_url=False)
    return {".".join(field_at(model, detail["loc"])[0]) for detail in details if detail["type"] in _TEXT_WANTED}


def locate(dotted: str, file: str, lines: Lines) -> str:
    """`file:line` of a dotted key, or of the nearest parent key that has a line; line 0 is the command line.

    A mistake of an entire section is attributed to the command line if an override changed one of its keys.
    """
    if any(line == 0 and key.startswith(f"{dotted}.") for key, line in lines.items()):
        return "command line"
    parts = dotted.split(".")
    while parts and ".".join(parts) not in lines:
        parts.pop()
    line = lines.get(".".join(parts), -1)
    return "command line" if line == 0 else f"{file}:{line}" if line > 0 else file


def nearest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """`did you mean 'this'?` if a known word is similar, else ""; `cutoff` is as in `difflib`."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else ""


def _sentence(
    model: type[BaseModel],
    detail: Any,
    keys: Sequence[str],
    known: Sequence[str],
    field: FieldInfo | None,
    where_is: WhereIs | None,
) -> str:
    kind, value, context = detail["type"], _without_secret(keys, detail["input"]), detail.get("ctx", {})
    if kind == "extra_forbidden":
        return describe_other_kind(model, detail["loc"], keys) or _unknown_key(model, keys, known, where_is)
    if kind == "missing":
        return "this key is required."
    # Our own validators already say what to do; pydantic only adds a prefix.
    if kind == "value_error":
        return str(detail["msg"]).removeprefix("Value error, ") + _got(value)
    if kind == "union_tag_invalid":
        tags = [tag.strip().strip("'") for tag in context["expected_tags"].split(",")]
        tags += (plugins := plugins_at(field)) or ()
        other = "" if plugins is None else ", or write package:Class for a plugin"
        right = nearest(context["tag"], tags) or f"use one of these{other}"
        return f"{context['tag']!r} is not one of {', '.join(map(repr, tags))}; {right}"
    if kind == "union_tag_not_found":
        return missing_kind(field, value)
    if kind == "literal_error":
        choices = [str(c) for c in (get_args(field.annotation) if field else ()) if isinstance(c, str)]
        right = nearest(str(value), choices) or "use one of these"
        return f"{value!r} is not {context['expected']}; {right}"
    if kind in _BOUNDS:
        return f"{value!r} must be {_BOUNDS[kind].format(**context)}{_share(value, context)}{_meaning(field)}"
    if kind == "dict_type":
        return f'is a section with names of your own, not {value!r}; write for example {".".join(keys)}.NAME="value"'
    if kind in ("model_type", "model_attributes_type", "dataclass_type"):
        return _section(keys, value, field)
    if kind in ("tuple_type", "list_type") and field and any(map(is_model, members(field.annotation))):
        return f"is a list of sections, not {value!r}; write [[{'.'.join(keys)}]] before each section"
    if kind in _TEXTS:
        return f"{value!r} must {_TEXTS[kind].format(**context)}{_meaning(field)}"
    for name, wanted in _WRONG_TYPE.items():
        if kind.startswith(f"{name}_"):
            article = "" if value is None else f"; got {value!r}"
            right = wanted.format(value="" if value is None else value, listed=list_form(value))
            return f"must be {right}{article}{_meaning(field)}"
    return f"{detail['msg']}{_got(value)}"


def _unknown_key(model: type[BaseModel], keys: Sequence[str], known: Sequence[str], where_is: WhereIs | None) -> str:
    name = keys[-1]
    if indexed := _INDEXED.fullmatch(name):
        return f"unknown key {name!r}; write an element of a list as {'.'.join([*keys[:-1], *indexed.groups()])}"
    # First a likely typo, then the exact word in another section, then any similar word.
    if near := nearest(name, known, 0.75):
        return f"unknown key {name!r}; {near}"
    if where_is and (elsewhere := where_is(model, name)):
        return f"unknown key {name!r}; {elsewhere}"
    if near := nearest(name, known, 0.5):
        return f"unknown key {name!r}; {near}"
    return f"unknown key {name!r}; the keys here are {', '.join(known)}."


def _section(keys: Sequence[str], value: Any, field: FieldInfo | None) -> str:
    models = [c for c in members(field.annotation) if is_model(c)] if field else []
    inside = list(dict.fromkeys(name for m in models for name in m.model_fields))
    sentence = f"is a section with its own keys ({', '.join(inside[:4])}{', ...' if len(inside) > 4 else ''})"
    example = f"{'.'.join(keys)}.{inside[0]}={value}" if inside else f"{'.'.join(keys)}.KEY={value}"
    return f"{sentence}, not a single value; write for example {example}"


def _share(value: Any, context: Mapping[str, Any]) -> str:
    """A hint that a share is expected, if the value looks like a percentage or an absolute number."""
    limit = context.get("le", context.get("lt"))
    if limit != 1 or not isinstance(value, int | float) or value <= 0:
        return ""
    return (
        f": it is a share, {value / 100:g} for {value:g} %"
        if value <= 100
        else ": it is a share, not an absolute number"
    )


def _meaning(field: FieldInfo | None) -> str:
    text = " ".join((field.description or "").split()) if field else ""
    return f'. It is described as: "{text.split(". ")[0].rstrip(".")}."' if text else ""


def _without_secret(keys: Sequence[str], value: Any) -> Any:
    """The value as sentences may cite it."""
    return HIDDEN if is_secret(".".join(keys)) or (isinstance(value, str) and secret_in(value)) else value


def _got(value: Any) -> str:
    return f" (got {value!r})" if isinstance(value, str | int | float | bool) else ""


YAML = re.compile(r"^\s*([A-Za-z0-9_.\-]+)\s*:\s*(.*?)\s*$")
"""A key and its value as YAML has them."""
_PLAIN = re.compile(r"^\s*([A-Za-z0-9_.\-]+)\s*=\s*([^\"'\[{\s#][^#]*?)\s*(?:#.*)?$")
_TWICE = ("Cannot declare", "Cannot mutate", "Cannot overwrite", "Cannot redefine", "Duplicate")
"""How tomllib's errors about keys and sections that are given twice begin."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
_NULL = ("None", "none", "null", "~")
_WORDS = {"True": "true", "False": "false", "yes": "true", "no": "false", "on": "true", "off": "false"}


def toml_remedy(text: str, fault: str) -> str:
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


def list_form(value: Any) -> str:
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
