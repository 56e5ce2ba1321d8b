"""Recipe keys that make a training fit into a device's memory, each with its memory and slowdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from bertwright.core.errors import RecipeError
from bertwright.core.overrides import apply_overrides
from bertwright.estimate.machine import Machine
from bertwright.forecast_shapes import Remedy
from bertwright.recipe import Recipe
from bertwright.train.memory.rank_memory import share_of

Keys = tuple[str, ...]
"""Overrides in command-line syntax."""
_CHECKPOINT = "train.checkpoint_activations=true"
_HALF = 'train.precision={kind="bf16", weights="bf16"}'
_SMALLER = ("medium", "small", "mini", "tiny")


class Needs(NamedTuple):
    """What a recipe needs on each device."""

    memory: tuple[float, ...]
    """Bytes, by phase."""
    seconds: float
    """Of all steps of all phases, or of one step each if their numbers are not known."""


class Measure(Protocol):
    """Computes what a recipe needs."""

    def __call__(self, recipe: Recipe) -> Needs:
        """The needs of the recipe on the planned machine."""


def remedies(recipe: Recipe, machine: Machine, measure: Measure) -> list[Remedy]:
    """Changes that make the training fit, least intrusive first; empty if it already fits or nothing helps."""
    before, device = measure(recipe), machine.device
    if device.fits(max(before.memory)):
        return []
    found: list[Remedy] = []
    for keys in _candidates(recipe, machine):
        # Try several keys, or another network, only if no single key suffices.
        if found and (len(keys) > 1 or any(key.startswith("model.") for key in keys)):
            break
        for tried in (keys, (*keys, *_micro_batches(recipe, keys, machine, measure))):
            # If smaller micro-batches suffice alone, they need not be combined with another key.
            if not tried or (found and set(found[0]["keys"]) <= set(tried)):
                continue
            changed = with_keys(recipe, tried)
            if changed is not None and device.fits(max((needs := measure(changed)).memory)):
                ratio = needs.seconds / before.seconds
                found.append({"keys": list(tried), "memory_bytes": max(needs.memory), "times_as_long": ratio})
                break
    return found


def with_keys(recipe: Recipe, keys: Sequence[str]) -> Recipe | None:
    """The recipe with overrides applied; None if it would be rejected."""
    values = recipe.to_json(exclude_none=True)
    with suppress(RecipeError):
        apply_overrides(values, keys, Recipe)
        changed = Recipe(**values)
        changed.check(given=False)
        return changed
    return None


def _candidates(recipe: Recipe, machine: Machine) -> Iterator[Keys]:
    """Keys to try, first alone and then together; the first candidate, without keys, stands for smaller
    micro-batches."""
    half = machine.device.has("bf16") and recipe.train.precision.kind in ("auto", "fp32", "tf32", "bf16")
    single: list[Keys] = [(_CHECKPOINT,)]
    single += [(_HALF,)] if half else []
    single += [(f"train.engine={kind}",) for kind in ("zero", "fsdp") if machine.ranks > 1]
    yield ()
    yield from single
    # A training has one engine; of these two, fsdp needs less memory.
    together = tuple(key for (key,) in single if key != "train.engine=zero")
    # A single key has been tried already.
    if len(together) > 1:
        yield together
    for size in _SMALLER:
        yield (f"model.size={size}",)


def _micro_batches(recipe: Recipe, keys: Keys, machine: Machine, measure: Measure) -> Keys:
    """The largest micro-batches (powers of two) with which the phases fit, given `keys`; () if there are none."""
    changed = with_keys(recipe, keys)
    if changed is None:
        return ()
    found: list[str] = []
    for index, needed in enumerate(measure(changed).memory):
        if machine.device.fits(needed):
            continue
        size = 1 << (share_of(changed.train.phases[index], machine.ranks).bit_length() - 1)
        # A phase has one size of a forward pass: the other key would contradict it.
        own = f"train.phases.{index}.micro_tokens=0"
        while size:
            key = f"train.phases.{index}.micro_batch={size}"
            smaller = with_keys(changed, (own, key))
            if smaller is not None and machine.device.fits(measure(smaller).memory[index]):
                break
            size //= 2
        if not size:
            return ()
        found += [own, key] if changed.train.phases[index].micro_tokens else [key]
    return tuple(found)
