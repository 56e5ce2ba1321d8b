"""The keys of a recipe by dotted name: the fields that a name leads to, the keys that end in it, the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bertwright.core.overrides import override_key
from bertwright.core.section_fields import described_fields, is_model, members

_NEAR = 0.8
"""How alike a name and a key must be for one to be a slip of the other."""


class Found(NamedTuple):
    """What a dotted name leads to."""

    key: str
    """The key as a recipe has it: without the kinds that the name may contain (`optim.lamb.eps`)."""
    fields: list[FieldInfo]
    """Its field, once for each kind of section that has it."""
    kinds: list[str]
    """These kinds, in the order of the fields; "" for a section that has none."""
    sections: list[type[BaseModel]]
    """The sections that it may hold; one, if the name ends in a kind."""
    only: dict[str, list[str]]
    """The kinds that its sections must have, if others lack the key, or that the name says: by the key of the kind."""


def kind_of(section: type[BaseModel]) -> str:
    """The kind that a class of sections is; "" if it is the only one."""
    field = section.model_fields.get("kind")
    return field.default if field else ""


def find(model: type[BaseModel], name: str) -> Found:
    """What a dotted name leads to; elements of lists are numbered, or left out.

    A part that is not a key raises `KeyError` with that part and the keys allowed in its place.
    """
    sections, fields, kinds, key = [model], list[FieldInfo](), list[str](), ""
    only = dict[str, list[str]]()
    for part in override_key(name).split("."):
        if part.isdecimal() and any("tuple" in str(field.annotation) for field in fields):
            key = f"{key}.{part}"
            continue
        if any(get_origin(field.annotation) is dict for field in fields):  # any name is a key there
            key, sections = f"{key}.{part}", []
            continue
        having = [each for each in sections if part in each.model_fields]
        if not having and (named := [each for each in sections if kind_of(each) == part]):
            sections, only[f"{key}.kind"] = named, [part]
            continue
        if not having:
            raise KeyError(part, list(dict.fromkeys(name for each in sections for name in each.model_fields)))
        if len(having) < len(sections):
            only[f"{key}.kind"] = [kind_of(each) for each in having]
        key = f"{key}.{part}" if key else part
        fields, kinds = [described_fields(each)[part] for each in having], [kind_of(each) for each in having]
        # Without duplicates: a class that every kind of the parent section holds is not a choice.
        sections = list(dict.fromkeys(each for field in fields for each in sections_of(field)))
    return Found(key, fields, kinds, sections, only)


def sections_of(field: FieldInfo) -> list[type[BaseModel]]:
    """The classes of the sections that a field may hold."""
    return [each for each in members(field.annotation) if is_model(each)]


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every dotted key; the first element of a list stands for all, because each has the same keys. Some more often."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        inside = f"{prefix}{name}.0." if "tuple" in str(field.annotation) else f"{prefix}{name}."
        yield from dict.fromkeys(key for each in sections_of(field) for key in keys(each, inside))


def ending_in(model: type[BaseModel], name: str) -> list[str]:
    """The keys whose last parts are `name`, such as `masking.unit` or `unit`, with the numbers of elements that it has;
    where it has none, they do not count."""
    parts = override_key(name).split(".")
    numbered, found = any(part.isdecimal() for part in parts), list[str]()
    pattern = ["0" if part.isdecimal() else part for part in parts]
    for key in dict.fromkeys(keys(model)):
        own = key.split(".") if numbered else _names(key)
        if own[-len(parts) :] == pattern:
            found.append(".".join([*own[: -len(parts)], *parts]) if numbered else key)
    return found


def nearest(model: type[BaseModel], name: str) -> list[str]:
    """The keys of which `name` is a slip, in as many of its last parts as there are such; none if it is of none."""
    parts, known = _names(override_key(name)), list(dict.fromkeys(keys(model)))
    for count in range(len(parts), 0, -1):
        endings = dict.fromkeys(".".join(own[-count:]) for key in known if len(own := _names(key)) >= count)
        if near := difflib.get_close_matches(".".join(parts[-count:]), endings, n=1, cutoff=_NEAR):
            return ending_in(model, near[0])
    return []


def _names(key: str) -> list[str]:
    """The parts of a key without the numbers of elements."""
    return [part for part in key.split(".") if not part.isdecimal()]
