"""Write the JSON Schemas of recipes and places, with which editors complete and check TOML.

`python -m tools.schemas` writes them into the package; a test compares them with the sections. They describe each key
on its own; `bertwright check` also checks conditions between keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from bertwright.core.config import Section
from bertwright.core.files import write_atomic
from bertwright.core.section_fields import described_fields, members
from bertwright.estimate.machine import HardwareConfig
from bertwright.launch.config import TARGETS
from bertwright.recipe import Recipe
from bertwright.shipped import schema_file


class Machines(Section):
    """Machines that are described only for a forecast (`bertwright plan --place`)."""

    hardware: HardwareConfig
    """Hardware of one machine, the number of machines, and their cost."""


MODELS: dict[str, Sequence[type[BaseModel]]] = {"recipe": (Recipe,), "place": (*TARGETS.values(), Machines)}
"""The models of each file: a file matches one of them."""
DIALECT = "http://json-schema.org/draft-07/schema#"
"""An old draft, because every editor's TOML checker supports it."""
_UNSAID = {"title", "role", "format", "discriminator"}
_SAME_FORM = {
    *("_preset_fills_in", "_size_or_file", "_longest_word_of_others", "_composed", "_without_secrets"),
    "_not_intels_mode",
}
"""Validators that run before a value is validated and accept no other form of it."""
_PART = "InPreset"
"""Ends the names of the definitions for presets."""


class _Generator(GenerateJsonSchema):
    """pydantic's generator, with the short forms that sections accept, and the required kind of a union's members."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Return the forms accepted besides the section itself; an unknown validator is an error."""
        section = super().function_before_schema(schema)
        match schema["function"]["function"].__name__:
            case "by_kind":
                return {"anyOf": [{"enum": list(section["discriminator"]["mapping"])}, section]}
            case "_as_list":
                one = {"anyOf": [{"type": "string"}, section["items"]]}
                return {"anyOf": [*one["anyOf"], section | {"items": one}]}
            case "_as_columns":
                return {"anyOf": [{"type": "string"}, section]}
            case "_bert_unless_said":
                return section | {"discriminator": {"mapping": {**section["discriminator"]["mapping"], "bert": ""}}}
            case name if name in _SAME_FORM:
                return section
            case name:
                raise NotImplementedError(f"say here which other form the validator {name} takes")


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 7) of the TOML files of that name, with the description of every key."""
    made, found = models_json_schema([(model, "validation") for model in MODELS[name]], schema_generator=_Generator)
    sections = found["$defs"]
    named = {reference.rpartition("/")[2] for reference in _kinds(sections)}
    for cls in dict.fromkeys(inner for model in MODELS[name] for inner in _sections(model)):
        _describe(cls, sections[cls.__name__])
        if cls.__name__ in named or (cls in MODELS[name] and "kind" in cls.model_fields):
            sections[cls.__name__]["required"] = ["kind", *sections[cls.__name__].get("required", [])]
    if name == "place":
        for target in TARGETS.values():  # the one section that only a forecast reads
            sections[target.__name__]["properties"] |= sections[Machines.__name__]["properties"]
    whole: dict[str, Any] = {"oneOf": list(made.values())} if len(made) > 1 else sections.pop(MODELS[name][0].__name__)
    definitions = {key: _plain(sections[key]) for key in sorted(sections)}
    plain = {"$schema": DIALECT, **_plain(whole), "definitions": definitions}
    return _with_presets(plain) if name == "recipe" else plain


def _with_presets(recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of recipes, in which a preset is a recipe of which any key may be left out."""
    sections = {key: value for key, value in recipe["properties"].items() if key not in ("preset", "presets")}
    preset = _part({"type": "object", "properties": sections, "additionalProperties": False})
    parts = {f"{key}{_PART}": _part(value) for key, value in recipe["definitions"].items()}
    presets = {**recipe["properties"]["presets"], "additionalProperties": preset}
    return {
        **recipe,
        "properties": {**recipe["properties"], "presets": presets},
        "definitions": {**recipe["definitions"], **parts},
    }


def _part(value: Any) -> Any:
    """Return the schema of what a preset says of a section: some of its keys, and elements of a list by their
    numbers."""
    if isinstance(value, list):
        return [_part(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "properties" in value:
        keys = {name: _part(inner) for name, inner in value["properties"].items()}
        return {**_part({key: inner for key, inner in value.items() if key != "properties"}), "properties": keys}
    # Without a kind, keys may be those of several sections.
    renamed = {"oneOf": "anyOf"}
    unsaid = ("required", "default", "minItems")
    part = {renamed.get(key, key): _part(inner) for key, inner in value.items() if key not in unsaid}
    if "$ref" in part:
        part["$ref"] += _PART
    if part.get("type") == "array" and "$ref" in str(part.get("items")):
        numbered = {"type": "object", "patternProperties": {r"^\d+$": part["items"]}, "additionalProperties": False}
        return {
            **({"description": part.pop("description")} if "description" in part else {}),
            "anyOf": [part, numbered],
        }
    return part


def text(name: str) -> str:
    """Return the schema as a published file."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


def _sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the model and every section in it, each as often as it occurs."""
    yield model
    for field in model.model_fields.values():
        for held in members(field.annotation):
            if isinstance(held, type) and issubclass(held, BaseModel):
                yield from _sections(held)


def _kinds(value: Any) -> Iterator[str]:
    """Yield references to the sections that a discriminator distinguishes by kind."""
    if isinstance(value, dict):
        yield from value.get("discriminator", {}).get("mapping", {}).values() if "oneOf" in value else ()
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _kinds(inner)


def _describe(section: type[BaseModel], schema: dict[str, Any]) -> None:
    """Set each key's description to the docstring of its field."""
    for name, field in described_fields(section).items():
        if field.description:
            schema["properties"][name]["description"] = " ".join(field.description.split())


def _plain(value: Any) -> Any:
    """Convert to draft 7, without keywords that only pydantic reads, and without null, which TOML does not have."""
    if isinstance(value, list):
        return [_plain(inner) for inner in value if inner != {"type": "null"}]
    if not isinstance(value, dict):
        return value.replace("#/$defs/", "#/definitions/") if isinstance(value, str) else value
    if "properties" in value:
        keys = {name: _plain(inner) for name, inner in value["properties"].items()}
        return {**_plain({key: inner for key, inner in value.items() if key != "properties"}), "properties": keys}
    kept = {key: _plain(inner) for key, inner in value.items() if key not in _UNSAID and not _empty_default(key, inner)}
    if "prefixItems" in kept:
        kept |= {"items": kept.pop("prefixItems"), "additionalItems": False}
    if len(kept.get("anyOf", ())) == 1:
        kept |= kept.pop("anyOf")[0]
    # In draft 7, keywords next to a reference are ignored.
    if "$ref" in kept and len(kept) > 1:
        kept["allOf"] = [{"$ref": kept.pop("$ref")}]
    return kept


def _empty_default(key: str, value: Any) -> bool:
    """Whether a default is nothing that a user would write: none, or an entire section."""
    return key == "default" and (value is None or isinstance(value, dict))


if __name__ == "__main__":
    for name in MODELS:
        write_atomic(schema_file(name), text(name).encode())
