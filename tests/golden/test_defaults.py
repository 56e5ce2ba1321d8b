"""The defaults that decide results, beside the versions of the stages: `defaults.json`.

A fingerprint knows only what differs from its default (`core.config.result_settings`). So where a default changes, or
the key that had it goes, the stage's VERSION must be raised: else finished artifacts would be taken for what they are
not. New keys that are off need no new version. `BERTWRIGHT_WRITE_GOLDEN=1 pytest tests/golden/test_defaults.py` writes
the table, and refuses the same.
"""

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bertwright.core.config import Section, result_settings, role
from bertwright.core.section_fields import members
from bertwright.examples.config import PlanSet
from bertwright.recipe import Recipe

TABLE = Path(__file__).with_name("defaults.json")
SECTIONS = {
    "corpus": ("corpus",),
    "vocab": ("vocab",),
    "examples": ("examples",),
    "train": ("train", "model", "optim"),
    "evaluate": ("evaluate",),
    "export": ("export", "texts"),
    "report": ("report",),
}
VERSIONS = {stage: import_module(f"bertwright.{stage}.config").VERSION for stage in SECTIONS}


def defaults(section: type[Section], prefix: str) -> Iterator[tuple[str, Any]]:
    """Every key that decides results and its default, by dotted name; members of unions by their kind."""
    for name, field in section.model_fields.items():
        if role(field) not in ("fingerprinted", "extendable"):
            continue
        if not field.is_required():
            yield f"{prefix}.{name}", result_settings(field.get_default(call_default_factory=True), defaults=False)
        yield from inner(field.annotation, f"{prefix}.{name}")


def inner(annotation: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """The defaults of the sections that a field may hold."""
    held = [member for member in members(annotation) if isinstance(member, type) and issubclass(member, Section)]
    for member in held:
        kind = member.model_fields["kind"] if len(held) > 1 else None
        # A kind that is not hashed was there before there was a choice, and its keys have their names of then.
        named = kind is not None and role(kind) == "fingerprinted"
        yield from defaults(member, f"{prefix}.{kind.default}" if named else prefix)


def now() -> dict[str, dict[str, Any]]:
    """The table of this version."""
    fields = Recipe.model_fields
    table = {
        stage: {
            "version": VERSIONS[stage],
            "defaults": dict(pair for name in names for pair in inner(fields[name].annotation, name)),
        }
        for stage, names in SECTIONS.items()
    }
    table["examples"]["defaults"] |= dict(defaults(PlanSet, "train.phases"))
    return json.loads(json.dumps(table))


def contradictions(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Defaults that changed or went while the version of their stage stayed."""
    return [
        f"{stage}: {key}: {value!r} -> {after[stage]['defaults'].get(key, 'gone')!r}"
        for stage, table in before.items()
        if table["version"] == after[stage]["version"]
        for key, value in table["defaults"].items()
        if after[stage]["defaults"].get(key, "gone") != value and not among_others(after[stage]["defaults"], key, value)
    ]


def among_others(defaults: dict[str, Any], key: str, value: Any) -> bool:
    """Whether `key` is the kind of a section that was alone, and is now one member of a union."""
    section, _, name = key.rpartition(".")
    return name == "kind" and defaults.get(f"{section}.{value}.kind") == value


def test_a_changed_default_comes_with_a_new_version() -> None:
    table, recorded = now(), json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    assert not contradictions(recorded, table), "raise the VERSION of the stage"
    if os.environ.get("BERTWRIGHT_WRITE_GOLDEN"):
        TABLE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    elif recorded != table:
        pytest.fail("write the table anew, with BERTWRIGHT_WRITE_GOLDEN=1, and look at its diff")


def test_the_table_tells_what_changed() -> None:
    before = {"corpus": {"version": 1, "defaults": {"a": 1, "b": 2}}}
    after = {"corpus": {"version": 1, "defaults": {"a": 1, "b": 3, "new": 0}}}
    assert contradictions(before, after) == ["corpus: b: 2 -> 3"]
    assert contradictions(before, {"corpus": {"version": 1, "defaults": {"b": 2}}}) == ["corpus: a: 1 -> 'gone'"]
    assert not contradictions(before, {"corpus": {"version": 2, "defaults": {}}})
    alone, one_of_two = ({"train": {"version": 1, "defaults": {key: "a"}}} for key in ("o.kind", "o.a.kind"))
    assert not contradictions(alone, one_of_two)
    assert contradictions(one_of_two, alone) == ["train: o.a.kind: 'a' -> 'gone'"]
    keys = now()["train"]["defaults"]
    assert keys["optim.lamb.weight_decay"] == 0.01 and keys["train.phases.masking.rate"] == 0.15
    assert "train.keep_checkpoints" not in keys and "train.init_from" not in keys
