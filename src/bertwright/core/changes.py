"""Why an artifact does not match an identity, in words; and whether restoring settings can help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bertwright.core.config import Identity, by_kind, differences
from bertwright.core.renamed import with_new_names

_VERSION = "the stage's version changed"
_SAME_SETTINGS = "an older version of bertwright, which recorded its settings otherwise, made it"


def changes(manifest: Mapping[str, Any], identity: Identity) -> list[str]:
    """Why the artifact of `manifest` does not match `identity`, one phrase per differing key; empty if it matches."""
    if manifest["fingerprint"] == identity.fingerprint:
        return []
    was, becomes = manifest["version"], identity.version
    phrases = [f"{_VERSION}: {was} -> {becomes}"] * (was != becomes)
    config = with_new_names(manifest["config"])
    if manifest.get("changed") is None:
        phrases += differences(*_known_to_both(config, identity.config))
    else:
        phrases += _of_hashed(config, with_new_names(manifest["changed"]), identity)
    phrases += _of_inputs(manifest["inputs"], identity.inputs)
    return list(dict.fromkeys(phrases)) or [_SAME_SETTINGS]


def remedy_of(phrases: Iterable[str]) -> str:
    """What to do besides using another folder, as the beginning of a sentence, about the phrases of `changes`."""
    if any(phrase.startswith((_VERSION, _SAME_SETTINGS)) for phrase in phrases):
        return "No settings restore what another version of bertwright made: continue with that version"
    return "Restore these settings"


def _of_hashed(config: Any, changed: Any, identity: Identity) -> Iterator[str]:
    values = differences(config, identity.config)
    # `config` holds all values, `changed` those that were hashed: a changed default differs only in the latter.
    for told in differences(changed, identity.changed):
        yield from [value for value in values if _of_one_key(value, told)] or [told]


def _of_one_key(difference: str, other: str) -> bool:
    """Whether two differences concern the same key, or one a key inside that of the other."""
    keys = sorted((phrase.partition(":")[0] + "." for phrase in (difference, other)), key=len)
    return keys[1].startswith(keys[0])


def _of_inputs(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        was, becomes = old.get(name), new.get(name)
        if was != becomes:
            yield f"its input {name} {'is new' if was is None else 'is gone' if becomes is None else 'changed'}"


def _known_to_both(old: Any, new: Any) -> tuple[Any, Any]:
    """Two values without the keys that only one of them has, and without those whose values have another form.

    Two versions differ in such keys even if the user changed nothing.
    """
    if isinstance(new, dict) and "kind" in new:
        old = by_kind(old)
    if isinstance(old, dict) and isinstance(new, dict):
        both = {key: _known_to_both(value, new[key]) for key, value in old.items() if key in new}
        return {key: one for key, (one, _) in both.items()}, {key: other for key, (_, other) in both.items()}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [_known_to_both(one, other) for one, other in zip(old, new, strict=True)]
        return [one for one, _ in pairs], [other for _, other in pairs]
    return (None, None) if isinstance(old, dict) or isinstance(new, dict) else (old, new)
