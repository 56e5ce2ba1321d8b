"""Explains a recipe key, given its dotted name, its last part, a short form, or another program's parameter."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bertwright.core.config import role
from bertwright.core.errors import RecipeError
from bertwright.recipe_keys import Found, ending_in, find, kind_of, nearest
from bertwright.recipe_keys import keys as all_keys


class Original(NamedTuple):
    """A parameter of another program."""

    table: str
    """Its table in `originals.toml`."""
    program: str
    name: str
    """As that program spells it."""
    keys: tuple[str, ...]
    """The recipe keys that hold it; empty if there are none."""
    note: str
    """How its value differs, or why no key holds it."""


@cache
def tables() -> dict[str, dict[str, Any]]:
    """The tables of `originals.toml`, one for each program."""
    return tomllib.loads(resources.files(__package__).joinpath("originals.toml").read_text(encoding="utf-8"))


@cache
def originals() -> dict[str, tuple[Original, ...]]:
    """The parameters in `originals.toml` by name (`-` read as `_`), one for each program that has it."""
    by_name: dict[str, tuple[Original, ...]] = {}
    for table, program in tables().items():
        for name, entry in program["options"].items():
            keys, note = entry if isinstance(entry, list) else (entry, "" if entry else program["reason"])
            original = Original(table, program["title"], name, tuple(filter(None, keys.split(", "))), note)
            by_name[_plain(name)] = (*by_name.get(_plain(name), ()), original)
    return by_name


def explain(model: type[BaseModel], query: str) -> dict[str, Any]:
    """Type, default and meaning of a key, and what other programs call by that name.

    `query` is a dotted key, also with a kind in it ("optim.lamb.eps"), the last parts of one ("masking.unit",
    "weight_decay"), or another program's parameter. Any other name is a `RecipeError` that suggests the nearest one.
    """
    name = query.lstrip("-")
    elsewhere = originals().get(_plain(name), ())
    # Our own keys take precedence over other programs' parameters: the user asks for the meaning here.
    keys = [name] if _exists(model, name) else _keys_for(model, name)
    keys = keys or ([] if elsewhere else _abbreviated(model, _plain(name)))
    if not keys and not elsewhere:
        raise RecipeError(f"--explain {query}: {_unknown(model, name)}")
    facts: dict[str, Any] = {key: _meaning(find(model, key).fields[0]) for key in keys}
    if len(keys) == 1:
        facts = _facts(model, keys[0])
    if elsewhere:
        facts["elsewhere"] = {original.program: _difference(original, keys) for original in elsewhere}
    return facts


def keys_of(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Every dotted key, with the first sentence of its meaning."""
    for key in dict.fromkeys(all_keys(model)):
        yield key, _meaning(find(model, key).fields[0]).partition(". ")[0].rstrip(".")


def fields_of(model: type[BaseModel], dotted: str) -> list[FieldInfo]:
    """The field of a dotted key, once for each kind of section that has it; none if it is not a key."""
    return find(model, dotted).fields if _exists(model, dotted) else []


def where_is(model: type[BaseModel], name: str) -> str:
    """Say where a name that is not a key in its place is a key, as the end of a sentence; "" if nowhere."""
    if keys := _keys_for(model, name):
        return f"it is called {' or '.join(keys)} here."
    elsewhere = originals().get(_plain(name), ())
    return f"no key corresponds to it: {elsewhere[0].note}" if elsewhere else ""


def _keys_for(model: type[BaseModel], name: str) -> list[str]:
    """The keys that end in `name` (list elements as `0`) or hold another program's parameter of that name."""
    held = (key for original in originals().get(_plain(name), ()) for key in original.keys)
    return list(dict.fromkeys([*ending_in(model, name), *held]))


def _abbreviated(model: type[BaseModel], name: str) -> list[str]:
    """The keys that a short name may stand for: by the first letters of their words (lr, wd), also in other programs
    (bs for batch_size), or by a beginning of one (warm)."""

    def fits(key: str) -> bool:
        words = _plain(key.rpartition(".")[2]).split("_")
        return "".join(word[:1] for word in words) == name if len(name) < 4 else any(w.startswith(name) for w in words)

    own = [key for key in all_keys(model) if fits(key)]
    others = [key for group in originals().values() for each in group if fits(each.name) for key in each.keys]
    return list(dict.fromkeys(own or others)) if len(name) > 1 else []


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _difference(original: Original, keys: list[str]) -> str:
    """How another program's parameter differs; with several keys, also which of them hold it."""
    which = ", ".join(original.keys) if len(keys) > 1 else ""
    if not original.keys:
        return f"no key corresponds to it: {original.note}"
    return ": ".join(filter(None, [which, original.note])) or "the same"


def _exists(model: type[BaseModel], dotted: str) -> bool:
    try:
        find(model, dotted)
    except KeyError:
        return False
    return True


def _facts(model: type[BaseModel], dotted: str) -> dict[str, Any]:
    found = find(model, dotted)
    field, default = found.fields[0], _default(found.fields[0])
    facts: dict[str, Any] = {"key": found.key}
    if found.only:
        facts["only with"] = {kind: " or ".join(names) for kind, names in found.only.items()}
    if dotted.endswith(tuple(f".{name}" for names in found.only.values() for name in names)):
        # The name of a kind: what that is, instead of what the key is.
        return {**facts, "meaning": _class_meaning(found.sections[0]), "keys": list(found.sections[0].model_fields)}
    facts["meaning"] = _meaning(field)
    if others := _other_meanings(found):
        facts["otherwise"] = others
    if found.sections:
        if default_kind := getattr(default, "kind", ""):
            facts["default"] = default_kind
        return {**facts, "keys": _keys_by_kind(found.sections)}
    facts["type"] = _type(found.fields)
    defaults = dict.fromkeys("required" if each.is_required() else str(_default(each)) for each in found.fields)
    facts["default"] = " or ".join(defaults) if len(defaults) > 1 or field.is_required() else default
    facts["role"] = role(field)
    return facts


def _meaning(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def _class_meaning(section: type[BaseModel]) -> str:
    return " ".join((section.__doc__ or "").split())


def _other_meanings(found: Found) -> dict[str, str]:
    """What the key means in the kinds of its section where that is something else than in the first."""
    if found.key.endswith(".kind"):
        return {}
    meanings = {kind: _meaning(field) for kind, field in zip(found.kinds, found.fields, strict=True)}
    return {kind: each for kind, each in meanings.items() if each != _meaning(found.fields[0])}


def _type(fields: Sequence[FieldInfo]) -> str:
    """The type of a key in words; with several kinds of its section, what any of them takes."""
    alternatives = [each for field in fields for each in _alternatives(field.annotation)]
    if all(get_origin(each) is Literal for each in alternatives):
        return type_words(Literal[tuple(dict.fromkeys(chain(*map(get_args, alternatives))))])
    return " or ".join(dict.fromkeys(type_words(field.annotation, field.metadata) for field in fields))


def _alternatives(annotation: Any) -> list[Any]:
    """The types of a union but None; of any other type, the type itself."""
    union = get_origin(annotation) in (Union, UnionType)
    return [each for each in get_args(annotation) if each is not type(None)] if union else [annotation]


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True, validated_data={})


def type_words(annotation: Any, constraints: Sequence[Any] = ()) -> str:
    """A type in the words of a person who writes a recipe: "a whole number, at least 0", "one of keep, drop".

    None is not a value in TOML (a key that is absent has its default), so it is left out.
    """
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_words(inside[0], inside[1:])
    if origin in (Union, UnionType):
        words = [type_words(each) for each in inside if each is not type(None) and each is not ...]
        return " or ".join(dict.fromkeys(words)) + _limits(constraints)
    if origin is Literal:
        return f"one of {', '.join(map(str, inside))}" if len(inside) > 1 else str(inside[0])
    if origin is tuple:
        return _list_words(inside)
    if origin is dict:
        return "a table"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation))) + _limits(constraints)


def _list_words(inside: Sequence[Any]) -> str:
    """A list in words, from the types of its elements; with `...` last, it has any number of them."""
    number = "" if inside[-1:] == (...,) else f"{len(inside)} "
    elements = list(dict.fromkeys(type_words(each) for each in inside if each is not ...))
    if len(elements) > 1:
        return f"a list of {' and '.join(elements)}"
    kind, comma, limits = elements[0].partition(", ")
    if plural := _PLURAL.get(kind):
        return f"a list of {number}{plural}" + (f", each {limits}" if comma else "")
    return f"a list, each of them {elements[0]}"


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
_PLURAL = {"a whole number": "whole numbers", "a number": "numbers", "a text": "texts", "a path": "paths"}
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def _limits(constraints: Sequence[Any]) -> str:
    """What limits a value, as the end of its type; the constraints are those of a field of pydantic."""
    found = [metadata for each in constraints for metadata in getattr(each, "metadata", [each])]
    limits = ["not empty" for each in found if getattr(each, "min_length", 0)]
    for each in found:
        bounds = {words: getattr(each, name, None) for name, words in _BOUNDS.items()}
        limits += [
            f"{words} {int(bound) if bound == int(bound) else bound:,}"
            for words, bound in bounds.items()
            if bound is not None
        ]
    return "".join(f", {each}" for each in limits)


def _unknown(model: type[BaseModel], dotted: str) -> str:
    if near := nearest(model, dotted):
        return f"there is no key {dotted!r}; did you mean {' or '.join(map(repr, near[:3]))}?"
    try:
        find(model, dotted)
    except KeyError as error:
        part, known = error.args
        if near := difflib.get_close_matches(part, [*known, *originals()], n=1):
            return f"there is no key {part!r}; did you mean {near[0]!r}?"
        if known:
            return f"there is no key {part!r}; the keys here are {', '.join(known)}."
    return f"there is no key {dotted!r}, because the value there has no keys of its own."


def _keys_by_kind(models: list[type[BaseModel]]) -> list[str] | dict[str, list[str]]:
    """The keys of a section; if it has several kinds, the keys of each kind."""
    if len(models) == 1:
        return list(models[0].model_fields)
    return {kind_of(each): list(each.model_fields) for each in models}
