"""The union of all targets, and loading of places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from bertwright.core.errors import RecipeError
from bertwright.core.overrides import apply_overrides, override_key
from bertwright.core.section_fields import members
from bertwright.core.toml import read_toml, validate
from bertwright.core.validation_messages import nearest
from bertwright.estimate.machine import hardware_in
from bertwright.launch.azureml.place import AzuremlPlace
from bertwright.launch.container import ContainerPlace
from bertwright.launch.job import refuse_secrets
from bertwright.launch.kubeflow import KubeflowPlace
from bertwright.launch.local import LocalPlace
from bertwright.launch.skypilot import SkypilotPlace
from bertwright.launch.slurm.place import SlurmPlace
from bertwright.launch.target import Target
from bertwright.launch.torchrun import TorchrunPlace
from bertwright.shipped import find_shipped

PlaceConfig = LocalPlace | TorchrunPlace | SlurmPlace | AzuremlPlace | ContainerPlace | KubeflowPlace | SkypilotPlace
"""A place: its target and that target's settings."""
TARGETS: dict[str, type[PlaceConfig]] = {member.model_fields["kind"].default: member for member in members(PlaceConfig)}
"""The targets by name."""


def load_place(target: str, place: str = "", settings: Sequence[str] = ()) -> Target:
    """Load the place that a TOML file, or the name of a place shipped with bertwright, describes.

    `settings` are `key=value` overrides applied after the file. Without a file, the target's defaults apply. One
    `RecipeError` lists every mistake, as `file:line: key: what is wrong`; if there are secrets, only these.
    """
    if target not in TARGETS:
        hint = nearest(target, list(TARGETS)) or f"the targets are {', '.join(TARGETS)}."
        raise RecipeError(f"there is no target {target!r}; {hint}")
    path = find_shipped("place", place) if place else None
    values, lines = read_toml(path, "place") if path else ({"kind": target}, {})
    apply_overrides(values, settings, TARGETS[target])
    # Line 0 stands for the command line, which messages then name instead of the file.
    lines |= {override_key(setting): 0 for setting in settings}
    file = str(path or target)
    refuse_secrets(values, file, lines, "Remove it, and set it in the environment of the place.")
    kind = values.get("kind")
    if kind != target:
        other = isinstance(kind, str) and kind in TARGETS
        mismatch = f"is a place of {kind}; use launch {kind}" if other else f'needs kind = "{target}"'
        raise RecipeError(f"{place or target}: {mismatch}, or give another place.")
    own = {key: value for key, value in values.items() if key != "hardware"}
    # `plan` uses the section [hardware] of the file; here only its mistakes matter.
    _, validated = _all_of(
        lambda: hardware_in(values, lines, file),
        lambda: validate(TARGETS[target], own, file, lines, overrides=settings),
    )
    return cast(Target, validated)


def _all_of(*checks: Callable[[], Any]) -> list[Any]:
    """Return what the checks return; raise one `RecipeError` with the mistakes of all of them."""
    results, mistakes = [], []
    for check in checks:
        try:
            results.append(check())
        except RecipeError as error:
            mistakes.append(str(error))
    if mistakes:
        raise RecipeError("\n".join(mistakes))
    return results
