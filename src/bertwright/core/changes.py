"""Why an artifact does not match an identity, in words; and whether restoring settings can help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bertwright.core.config import Identity, differences

_VERSION = "the stage's version changed"


def changes(manifest: Mapping[str, Any], identity: Identity) -> list[str]:
    """Why the artifact of `manifest` does not match `identity`, one phrase per differing key; empty if it matches."""
    if manifest["fingerprint"] == identity.fingerprint:
        return []
    was, becomes = manifest["version"], identity.version
    phrases = [f"{_VERSION}: {was} -> {becomes}"] * (was != becomes)
    phrases += _changed_settings(manifest, identity)
    phrases += _changed_inputs(manifest["inputs"], identity.inputs)
    return list(dict.fromkeys(phrases))


def remedy_of(phrases: Iterable[str]) -> str:
    """What to do besides using another folder, as the beginning of a sentence, about the phrases of `changes`."""
    if any(phrase.startswith(_VERSION) for phrase in phrases):
        return "No settings restore what another version of bertwright made: continue with that version"
    return "Restore these settings"


def _changed_settings(manifest: Mapping[str, Any], identity: Identity) -> Iterator[str]:
    values = differences(manifest["config"], identity.config)
    # `config` holds all values, `changed` those that were hashed: a changed default differs only in the latter.
    for difference in differences(manifest["changed"], identity.changed):
        yield from [value for value in values if _same_key(value, difference)] or [difference]


def _same_key(difference: str, other: str) -> bool:
    """Whether two differences concern the same key, or one a key inside that of the other."""
    keys = sorted((phrase.partition(":")[0] + "." for phrase in (difference, other)), key=len)
    return keys[1].startswith(keys[0])


def _changed_inputs(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        was, becomes = old.get(name), new.get(name)
        if was != becomes:
            yield f"its input {name} {'is new' if was is None else 'is gone' if becomes is None else 'changed'}"
