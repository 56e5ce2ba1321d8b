"""The phases of a recipe at a tiny scale: they keep their lengths, learning rates, masks and shares of the steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertwright.sample import LABELLED
from bertwright.scale.replacement import Replacement
from bertwright.train.settings.phase_config import LENGTHS, PhaseConfig

STEPS = 12
"""Approximate number of optimizer steps of all phases together."""
TOKENS = 2048
"""Capacity of the largest global batch, in tokens."""
_SMALL = "less computation"
_SHAPE = "the phases keep their shares of the steps"


def scaled_phases(phases: Sequence[PhaseConfig], labelled: int | None = None) -> Iterator[Replacement]:
    """Yield the replacements in the phases; `labelled`: how many labelled texts are their data, 0 if that is not known
    yet; None: they have other data."""
    known = [_planned_steps(phase, labelled or 0) for phase in phases]
    # A phase whose length nobody knows yet counts as one whole tiny run: alone, it keeps all of its steps.
    planned = [STEPS if steps is None else steps for steps in known]
    total, largest = sum(planned), max(phase.batch * phase.length for phase in phases)
    for i, (phase, steps) in enumerate(zip(phases, planned, strict=True)):
        share = min(1.0, STEPS / total)
        short = max(2, round(steps * share)) if steps > 2 else max(1, round(steps))
        # One factor for all phases, that of the largest batch, so that they keep their ratio.
        batch = max(1, round(phase.batch * min(1.0, TOKENS / largest)))
        replaced = [*_length(phase, short, steps), *_warmup(phase, short, known[i]), *_masking(phase, short, steps)]
        replaced += [*_data(phase, labelled is not None), *_batch(phase, batch)]
        yield from (Replacement(f"train.phases.{i}.{key}", value, reason) for key, value, reason in replaced)


def _planned_steps(phase: PhaseConfig, labelled: int) -> float | None:
    """Return the approximate steps of a phase; None for epochs over examples whose number is not known yet."""
    if phase.steps is not None:
        return phase.steps
    if phase.samples is not None:
        return max(1.0, phase.samples / phase.batch)
    if phase.tokens is not None:
        return max(1.0, phase.tokens / (phase.batch * phase.length))
    assert phase.epochs is not None
    return max(1.0, phase.epochs * labelled / phase.batch) if labelled else None


def _length(phase: PhaseConfig, steps: int, planned: float) -> Iterator[tuple[str, object, str]]:
    # The first is steps, and a phase may have only one length.
    for name in LENGTHS[1:]:
        if getattr(phase, name) is not None:
            yield name, None, "replaced by steps"
    yield "steps", steps, _SHAPE
    if phase.end_after is not None:
        yield "end_after", min(steps, max(1, round(phase.end_after * steps / planned))), _SHAPE
    if phase.hours is not None:
        yield "hours", None, "the phase ends after a number of steps"


def _warmup(phase: PhaseConfig, steps: int, planned: float | None) -> Iterator[tuple[str, object, str]]:
    """Yield what keeps the share of a warm-up that is given in steps."""
    if phase.warmup < 1:
        return
    before = getattr(phase.schedule, "warmup_before", 0)
    if planned is None:
        yield "warmup", None, "its share is not known before the examples are counted"
        if before:
            yield "schedule.warmup_before", None, "the warm-up is a share"
        return
    warmup = min(steps, max(1, round(phase.warmup * steps / planned)))
    yield "warmup", warmup, _SHAPE
    if before:
        # At least a step of the warm-up must be left.
        yield "schedule.warmup_before", min(warmup - 1, round(before * steps / planned)), _SHAPE


def _masking(phase: PhaseConfig, steps: int, planned: float) -> Iterator[tuple[str, object, str]]:
    if isinstance(phase.masking.rate, float):
        return
    rates: list[list[float]] = []
    for step, rate in phase.masking.rate:
        # Every pair has a later step than the one before it.
        at = max(round(step * steps / planned), len(rates) and int(rates[-1][0]) + 1)
        # A change that the phase does not reach would be refused as one without effect.
        if at < steps:
            rates.append([at, rate])
    yield "masking.rate", rates, _SHAPE


def _data(phase: PhaseConfig, labelled: bool) -> Iterator[tuple[str, object, str]]:
    if labelled:
        yield "data", str(LABELLED), "built in, a few English sentences"
    elif phase.data is not None:
        yield "data", None, "replaced by the built-in text"
        yield "quarantine", None, "no data files are read"


def _batch(phase: PhaseConfig, batch: int) -> Iterator[tuple[str, object, str]]:
    yield "batch", batch, "the batches of the phases keep their ratio" if batch < phase.batch else _SMALL
    if phase.batch_warmup:
        # One increase stands for all: so few steps and sequences leave no room for more.
        grows = [[0, max(1, batch // 2)], [1, batch]] if batch > 1 else []
        yield "batch_warmup", grows or None, "it still grows" if grows else "a batch of one cannot grow"
    if phase.micro_tokens:
        # Two of the longest sequences, so that a forward pass still holds several.
        yield "micro_tokens", 2 * phase.length, _SMALL
    elif phase.packing:
        yield "micro_batch", min(2, batch), _SMALL
    elif phase.micro_batch != "auto" and 0 < phase.micro_batch < phase.batch:
        yield "micro_batch", max(1, batch // 2), "gradients are still accumulated" if batch > 1 else _SMALL
    elif phase.micro_batch not in (0, "auto"):
        # It was the whole batch, and may exceed the small one, which would be refused.
        yield "micro_batch", None, _SMALL
