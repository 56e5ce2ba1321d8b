"""What a job file of Azure ML states, as keys of a place of `bertwright launch azureml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.core.dotted import texts
from bertwright.translate.command import Key
from bertwright.translate.stated import Statement

_MACHINES = {"compute", "vm_size"}
"""Keys of which a place needs one."""


def azure_keys(stated: Sequence[Statement], recipe: Mapping[str, Any]) -> dict[str, Key]:
    """Return the keys of the place, each with the setting that it comes from; of several values the last one counts."""
    keys = {each.key: Key(each.key, each.value, each.said) for each in stated if each.key and each.value is not None}
    if keys.pop("inputs", None):
        inputs: dict[str, dict[str, str]] = {}
        for label, data in (found for each in stated for found in _inputs(each, recipe)):
            if data not in inputs.values():
                alike = sum(name.startswith(label) for name in inputs)
                inputs[f"{label}_{alike + 1}" if alike else label] = data
        keys |= {"inputs": Key("inputs", inputs, "inputs")} if inputs else {}
    return keys


def needs_machine(stated: Sequence[Statement]) -> bool:
    """Whether neither a cluster nor the size of serverless machines is known."""
    return not any(each.key in _MACHINES and each.value is not None for each in stated)


def unheld(stated: Sequence[Statement], recipe: Mapping[str, Any]) -> Iterator[str]:
    """Yield what no key of the place holds, with the reason."""
    for each in stated:
        if each.left:
            yield each.left
        elif each.key == "inputs" and not [*_inputs(each, recipe)]:
            yield f"{each.said}: nothing in the recipe reads it"


def _inputs(stated: Statement, recipe: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name of an input, and the input of a place for each key of the recipe that reads its data or files
    below it."""
    for label, data in stated.value.items() if stated.key == "inputs" else ():
        for key, text in texts(recipe):
            below = text.removeprefix(data["path"])
            if below != text and (not below or below.startswith("/") or data["path"].endswith("/")):
                yield label, {"key": key, **data, **({"below": below.strip("/")} if below.strip("/") else {})}
