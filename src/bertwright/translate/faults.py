"""Mistakes in the numbers of commands, as far as they can be computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bertwright.translate.command import Key
from bertwright.translate.complete import PUBLISHED, UNSAID
from bertwright.translate.draft import Draft


def faults(draft: Draft, ranks: int | None) -> Iterator[str]:
    """Yield contradictions between a phase's numbers, or with the numbers its learning rate was published for."""
    for number, phase in enumerate(draft.phases):
        yield from _rate_falls_at_once(number, phase)
        if ranks is not None:
            yield from _another_batch(number, phase, ranks)
        yield from _few_predictions(number, phase)


def _rate_falls_at_once(number: int, phase: Mapping[str, Key]) -> Iterator[str]:
    warmup = phase["warmup"].value if "warmup" in phase else 0.0
    schedule = phase.get("schedule")
    chosen = schedule is not None and not schedule.why.startswith(UNSAID)
    if schedule is not None and chosen and schedule.value == "poly_nvidia" and 0 < warmup < 1:
        drop = 1 - (1 - warmup) ** 0.5
        yield (
            f"train.phases.{number}: NVIDIA's schedule drops by {drop:.1%} at the end of the warm-up, and its last "
            'update has rate 0. schedule = "poly" has neither fault.'
        )


def _another_batch(number: int, phase: Mapping[str, Key], ranks: int) -> Iterator[str]:
    published = PUBLISHED.get(phase["length"].value)
    if published and "batch" in phase and not phase["batch"].why.startswith(UNSAID):
        batch, rate, *_ = published
        given = phase["batch"].value
        # A tenth more or less is the published batch, rounded for a number of processes.
        if phase["learning_rate"].value == rate and not 0.9 < given / batch < 1.1:
            meant = max(1, round(batch * ranks / given))
            fits = f"; of {meant} processes it would be {given // ranks * meant:,}" if meant != ranks else ""
            yield (
                f"train.phases.{number}: the global batch of {ranks} processes is {given:,}{fits}. The rate {rate:g} "
                f"was published for {batch:,}."
            )


def _few_predictions(number: int, phase: Mapping[str, Key]) -> Iterator[str]:
    most = phase["masking.max_predictions"].value if "masking.max_predictions" in phase else 0
    length = phase["length"].value
    if 0 < most < 0.12 * length:
        yield (
            f"train.phases.{number}: at most {most} predictions of {length} tokens are {most / length:.1%}, not the "
            "requested 15 %; the published setting for 512 is 80."
        )
