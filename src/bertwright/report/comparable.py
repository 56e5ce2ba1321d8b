"""Whether the scores and curves of several runs can be compared; where they cannot, the page warns of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertwright.page.markup import Content, b
from bertwright.report.compared import Run


def comparable(runs: Sequence[Run]) -> bool:
    """Whether the scores of masked tokens were taken on the same tokens, so that one of them is the best."""
    return _same_vocabulary(runs) and _same_conditions(runs)


def warnings(runs: Sequence[Run]) -> Iterator[Content]:
    """Warnings to read before comparing any numbers."""
    tokens = any("mlm_loss" in run.scores for run in runs)
    if tokens and not _same_vocabulary(runs):
        yield (
            b("The vocabularies differ."),
            " Loss and accuracy are measured per token, and different vocabularies "
            "have different tokens, so these numbers cannot be compared.",
        )
    elif len({run.settings.get("train made of: examples", "") for run in runs}) > 1:
        yield (
            b("The examples differ."),
            " The held-out texts may differ, so scores can be compared only as far as the texts can.",
        )
    if tokens and not _same_conditions(runs):
        known = ((run.name, *run.scored_on) for run in runs if run.scored_on)
        each = "; ".join(f"{name}: mask rate {rate:g}, length {length:,}" for name, rate, length in known)
        yield (
            b("The scores were taken under different conditions"),
            f" ({each}), so these numbers cannot be "
            "compared. The stage evaluate scores finished runs alike if evaluate.mask_rate and evaluate.length are "
            "the same.",
        )
    if tokens and len({rates for run in runs if (rates := _mask_rates(run))}) > 1:
        yield (
            b("The mask rates of training differ."),
            " The more tokens are masked, the harder they are to predict, so "
            "the curves of loss and accuracy cannot be compared.",
        )
    if under_way := [run.name for run in runs if not run.finished]:
        yield (
            b("Not finished:"),
            f" {', '.join(under_way)}. Numbers are those of the last row, settings those "
            "of the newest checkpoint, which does not say how long phases are.",
        )


def _same_vocabulary(runs: Sequence[Run]) -> bool:
    return len({run.vocabulary for run in runs}) == 1


def _same_conditions(runs: Sequence[Run]) -> bool:
    """Whether the scores of masked tokens were taken at one mask rate and length, as far as these are known."""
    return len({run.scored_on for run in runs if run.scored_on}) <= 1


def _mask_rates(run: Run) -> frozenset[str]:
    """The mask rates of the phases; empty if unknown."""
    phases = (key for key in run.settings if key.startswith("train.phases.") and key.endswith(".masking.rate"))
    return frozenset(run.settings[key] for key in phases)
