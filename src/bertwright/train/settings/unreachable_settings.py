"""Settings for steps of training that the phases do not have. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from bertwright.train.averaging.config import LastConfig
from bertwright.train.config import TrainConfig
from bertwright.train.settings.phase_config import LENGTHS


def unreachable_settings(train: TrainConfig, steps: Sequence[int] = ()) -> Iterator[tuple[str, str]]:
    """Yield the key of each setting without any effect on phases of these lengths, in steps, and why.

    Without `steps`, the lengths are those of the recipe; a length that depends on the examples counts as infinite.
    """
    lengths: Sequence[float] = steps or [phase.known_steps() or inf for phase in train.phases]
    for i, (phase, length) in enumerate(zip(train.phases, lengths, strict=True)):
        key = f"train.phases.{i}"
        given = next(f"{key}.{name}" for name in LENGTHS if getattr(phase, name) is not None)
        has = f"but the phase has {length:,} steps ({given}), counted from 0"
        if phase.batch_warmup and (last := phase.batch_warmup[-1][0]) >= length:
            text = f"reaches batch {phase.batch:,} at step {last:,}, {has}"
            yield f"{key}.batch_warmup", f"{text}; let it grow earlier, or make the phase longer"
        if later := [step for step in phase.masking.changes if step >= length]:
            text = f"has a rate from step {later[0]:,} on, {has}"
            yield f"{key}.masking.rate", f"{text}; leave that pair out, or make the phase longer"
        # With a time limit, each tenth of it is scored, too.
        every = 1 if train.evaluate_every == "epoch" else train.evaluate_every
        if phase.target_accuracy is not None and phase.hours is None and every >= length:
            text = f"{phase.target_accuracy:g} is looked for every {every:,} steps"
            text += f" (train.evaluate_every), but the phase ends after {length:,} steps ({given}) in any case"
            yield f"{key}.target_accuracy", f"{text}; lower train.evaluate_every, or leave it out"
    yield from _unreachable_window(train, max(lengths))


def _unreachable_window(train: TrainConfig, longest: float) -> Iterator[tuple[str, str]]:
    """Yield the guard's window if even the phase with the most steps ends before an update is judged."""
    limits = " and ".join(f"train.guard.{name}" for name in ("spike", "loss_spike") if getattr(train.guard, name))
    if limits and train.guard.window >= longest:
        text = f"the first {train.guard.window:,} updates of a phase are not judged, but no phase (train.phases) has"
        yield "train.guard.window", f"{text} more than {longest:,}; lower it, or leave {limits} out"


def partly_reached_settings(train: TrainConfig, ends: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    """Yield the key of each setting that has only a part of its effect on phases that end after these steps, what is
    missing, and what to do."""
    total, averaging = sum(ends), train.averaging
    for i, band in enumerate(train.expected):
        if band.step > total:
            text = f"step {band.step:,} comes after the {total:,} steps of all phases (train.phases), so no loss is"
            yield f"train.expected.{i}", f"{text} compared with this band.", "Lower its step, or leave it out."
    if isinstance(averaging, LastConfig) and 0 < (copies := total // averaging.every) < averaging.count:
        text = f"train.averaging.count is {averaging.count:,}, but the {total:,} steps of all phases (train.phases)"
        text += f" give only {copies:,} copies with train.averaging.every = {averaging.every:,}."
        yield "train.averaging", text, "Lower one of the two."


def known_ends(train: TrainConfig) -> list[int] | None:
    """Return the step after which each phase ends at the latest; None if that depends on their examples."""
    ends = [min(filter(None, (phase.known_steps(), phase.end_after)), default=None) for phase in train.phases]
    known = [end for end in ends if end is not None]
    return known if len(known) == len(ends) else None
